from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from colmem.contract.errors import ConfigError, Unavailable
from colmem.recall.extractive import MODEL, NO_ANSWER, Extract, Source
from colmem.recall.llm import Endpoint, answer_with_model, ask, read_marks

SOURCES = [Source("Rivers flow.", 0.9), Source("Lakes rest.", 0.8), Source("Seas swell.", 0.7)]
OTHERWISE = Extract("Rivers flow. [1]", [0])


class _Server(ThreadingHTTPServer):
    status, reply, raw = 200, "Lakes rest [2].", None
    seen: list[dict]


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.seen.append({"body": json.loads(body), "headers": dict(self.headers)})
        answer = {"choices": [{"message": {"content": self.server.reply}}]}
        data = self.server.raw or json.dumps(answer).encode()
        self.send_response(self.server.status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *args: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[_Server]:
    with _Server(("127.0.0.1", 0), _Handler) as server:
        server.seen = []
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def _endpoint(server: _Server) -> Endpoint:
    return Endpoint(base_url=f"http://127.0.0.1:{server.server_port}/v1", model="local-7b")


def _answer(server: _Server, instructions: str | None = None):
    return answer_with_model(
        _endpoint(server), "What rests?", SOURCES, instructions=instructions, otherwise=OTHERWISE
    )


def test_the_model_answers_from_numbered_sources(server, monkeypatch) -> None:
    monkeypatch.setenv("COLMEM_LLM_KEY", "secret-1")
    assert _answer(server, "one sentence") == ("Lakes rest [1].", [1], "local-7b")
    (seen,) = server.seen
    asked = seen["body"]["messages"][1]["content"]
    assert "[2] Lakes rest." in asked
    assert "What rests?" in asked
    assert "one sentence" in asked
    assert seen["headers"]["Authorization"] == "Bearer secret-1"


@pytest.mark.parametrize("reply", ["Lakes rest [4].", "Lakes rest [0].", "Lakes rest.", ""])
def test_marks_that_name_no_source_fall_back(server, reply: str) -> None:
    server.reply = reply
    assert _answer(server) == (*OTHERWISE, MODEL)


@pytest.mark.parametrize(
    ("status", "raw", "attempts"),
    [(500, None, 2), (401, None, 1), (200, b"<html>", 1), (200, b'{"choices": []}', 1)],
)
def test_failures_fall_back_and_never_show_the_key(
    server, monkeypatch, status: int, raw: bytes | None, attempts: int
) -> None:
    monkeypatch.setenv("COLMEM_LLM_KEY", "secret-2")
    server.status, server.raw = status, raw
    assert _answer(server) == (*OTHERWISE, MODEL)
    assert len(server.seen) == attempts
    with pytest.raises(Unavailable) as caught:
        ask(_endpoint(server), "What?", SOURCES, instructions=None)
    assert "secret-2" not in str(caught.value)


def test_nobody_listening_falls_back(server) -> None:
    endpoint = _endpoint(server)
    server.server_close()
    answered = answer_with_model(endpoint, "?", SOURCES, instructions=None, otherwise=OTHERWISE)
    assert answered.model == MODEL


def test_marks_are_numbered_in_order_of_mention() -> None:
    assert read_marks("A [3][1]. B [1, 3].", 3) == ("A [1][2]. B [2][1].", [2, 0])
    assert read_marks(NO_ANSWER, 3) == (NO_ANSWER, [])


def test_an_address_without_a_scheme_is_refused() -> None:
    with pytest.raises(ConfigError, match="no http or https address"):
        Endpoint(base_url="file:///etc/passwd", model="m")
