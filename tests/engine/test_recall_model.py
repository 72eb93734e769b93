from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest

import colmem

TEXTS = ["The kettle boils at noon.", "The baker sells rye bread on Mondays."]


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Any]]:
    """A chat completion server on loopback; ``reply`` and ``status`` say how it answers."""
    said: dict[str, Any] = {"reply": "", "status": 200, "asked": []}

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            said["asked"].append(json.loads(body))
            reply = {"choices": [{"message": {"role": "assistant", "content": said["reply"]}}]}
            data = json.dumps(reply).encode()
            self.send_response(said["status"])
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *args: Any) -> None: ...

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    monkeypatch.setenv("COLMEM_LLM_URL", f"http://127.0.0.1:{server.server_port}/v1")
    monkeypatch.setenv("COLMEM_LLM_MODEL", "small-model")
    yield said
    server.shutdown()
    thread.join()
    server.server_close()


def ask() -> colmem.RecallAnswer:
    with colmem.open(":memory:") as engine:
        engine.store_many([colmem.document(text) for text in TEXTS])
        return engine.recall(question="When does the baker sell rye bread?", limit=2)


def test_a_marked_reply_is_the_answer(model: dict[str, Any]) -> None:
    model["reply"] = "Rye bread is sold on Mondays [1]."
    answer = ask()
    assert (answer.answer, answer.model) == (model["reply"], "small-model")
    assert [c.snippet for c in answer.citations] == [TEXTS[1]]
    assert len(model["asked"]) == 1


@pytest.mark.parametrize(
    ("reply", "status"), [("no mark", 200), ("a wrong mark [9]", 200), ("x [1]", 401)]
)
def test_a_failing_model_leaves_the_extractive_answer(
    model: dict[str, Any], reply: str, status: int
) -> None:
    model["reply"], model["status"] = reply, status
    answer = ask()
    assert answer.model == "extractive-v1"
    assert "rye bread on Mondays. [1]" in answer.answer


def test_half_a_configuration_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLMEM_LLM_URL", "http://127.0.0.1:1/v1")
    with pytest.raises(colmem.ConfigError, match="COLMEM_LLM_MODEL is not set"):
        colmem.open(":memory:")
