"""openai:<base_url>#<model> against a server on 127.0.0.1 that misbehaves on demand."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest

from colmem.contract.errors import (
    ConfigError,
    EngineError,
    InvalidRequest,
    Unauthorized,
    Unavailable,
)
from colmem.embed import embedder, endpoint, registry

SECRET = "sk-not-to-be-seen"


class Server:
    """Answers in the shape of OpenAI; ``script`` holds statuses or bodies to give first."""

    def __init__(self):
        self.requests = []
        self.script = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                outer.requests.append((self.path, body, self.headers.get("Authorization")))
                step = outer.script.pop(0) if outer.script else 200
                status, headers, answer = 200, {}, outer.answer(body["input"])
                if isinstance(step, int):
                    status = step
                elif isinstance(step, tuple):
                    status, headers = step
                else:
                    answer = step
                if status == 0:  # hang up without an answer
                    self.close_connection = True
                    return
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *args):
                pass

        self.httpd = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.httpd.handle_error = lambda *args: None  # the client hung up
        self.base = f"http://127.0.0.1:{self.httpd.server_port}/v1"
        self.thread = threading.Thread(target=self.httpd.serve_forever, args=(0.01,), daemon=True)
        self.thread.start()

    @staticmethod
    def answer(texts):
        # Backwards, as an endpoint may order its answer as it likes.
        data = [
            {"object": "embedding", "index": i, "embedding": [len(text), 3.0, 0.0]}
            for i, text in enumerate(texts)
        ]
        return json.dumps({"object": "list", "data": data[::-1], "model": "m"}).encode()

    def close(self):
        self.httpd.shutdown()
        self.httpd.server_close()
        self.thread.join()


@pytest.fixture
def server():
    made = Server()
    yield made
    made.close()


@pytest.fixture(autouse=True)
def _quick(monkeypatch):
    monkeypatch.setattr(endpoint, "FIRST_PAUSE_S", 0.001)
    monkeypatch.setattr(endpoint, "PAUSE_S_MAX", 0.01)
    monkeypatch.setattr(registry, "_made", {})
    for name in endpoint.KEY_VARIABLES:
        monkeypatch.delenv(name, raising=False)


def make(server):
    return embedder(f"openai:{server.base}#m")


def test_vectors_come_back_in_order_and_normalised(server):
    made = make(server)
    assert not server.requests
    vectors = made.embed(["abcd", "ab", " "])
    assert made.key == f"openai:{server.base}#m"
    assert made.dim == 3
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(vectors, [[0.8, 0.6, 0], [2 / 13**0.5, 3 / 13**0.5, 0], [0, 0, 0]])
    assert server.requests == [("/v1/embeddings", {"model": "m", "input": ["abcd", "ab"]}, None)]


def test_dim_asks_once(server):
    made = make(server)
    assert (made.dim, made.dim) == (3, 3)
    assert len(server.requests) == 1
    assert made.embed([]).shape == (0, 3)


def test_texts_go_in_batches(server, monkeypatch):
    monkeypatch.setattr(endpoint, "BATCH_CHARS_MAX", 100)
    texts = ["x" * (1 + n % 9) for n in range(300)] + ["y" * 500]
    vectors = make(server).embed(texts)
    sent = [body["input"] for _, body, _ in server.requests]
    assert [text for batch in sent for text in batch] == texts
    assert all(len(batch) == 1 or sum(map(len, batch)) <= 100 for batch in sent)
    one = np.array([len(texts[7]), 3.0, 0.0])
    np.testing.assert_allclose(vectors[7], one / np.linalg.norm(one), rtol=1e-6)


@pytest.mark.parametrize("failure", [429, 500, 503, 0, (429, {"Retry-After": "0"})])
def test_passing_failures_are_tried_again(server, failure):
    server.script = [failure, failure]
    assert make(server).embed(["abcd"]).shape == (1, 3)
    assert len(server.requests) == 3


def test_lasting_failures_end(server):
    server.script = [503] * 20
    with pytest.raises(Unavailable, match="failed 4 times, last with HTTP status 503"):
        make(server).embed(["abcd"])
    assert len(server.requests) == endpoint.TRIES


def test_nobody_listens(server):
    made = make(server)
    server.httpd.server_close()
    with pytest.raises(Unavailable, match="ConnectionRefusedError"):
        made.embed(["abcd"])


def test_a_silent_endpoint_times_out(server, monkeypatch):
    monkeypatch.setattr(endpoint, "TIMEOUT_S", 0.05)
    release = threading.Event()
    monkeypatch.setattr(server, "answer", lambda texts: str(release.wait(5)).encode())
    try:
        with pytest.raises(Unavailable, match="failed 4 times"):
            make(server).embed(["abcd"])
    finally:
        release.set()


@pytest.mark.parametrize(
    ("status", "error", "words"),
    [
        (401, Unauthorized, "set a valid key"),
        (403, Unauthorized, "set a valid key"),
        (400, EngineError, "answered 400"),
        (404, EngineError, "answered 404"),
    ],
)
def test_refusals_are_not_tried_again(server, monkeypatch, status, error, words):
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    server.script = [status]
    with pytest.raises(error, match=words) as caught:
        make(server).embed(["private text"])
    assert len(server.requests) == 1
    assert SECRET not in str(caught.value)
    assert "private text" not in str(caught.value)


def test_redirects_are_refused(server):
    server.script = [(302, {"Location": "http://127.0.0.1:9/elsewhere"})]
    with pytest.raises(EngineError, match="answered 302"):
        make(server).embed(["abcd"])


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (b"<html>", "not the JSON"),
        (b'{"data": [{"index": 0}]}', "not the JSON"),
        (b'{"data": []}', "one vector for each of the 2 texts"),
        (b'{"data": [{"index": 0, "embedding": [1]}, {"index": 0, "embedding": [1]}]}', "one vec"),
        (b'{"data": [{"index": 0, "embedding": [1]}, {"index": 1, "embedding": [1, 2]}]}', "1, 2"),
        (b'{"data": [{"index": 0, "embedding": []}, {"index": 1, "embedding": []}]}', "length"),
    ],
)
def test_malformed_answers(server, answer, words):
    server.script = [answer]
    with pytest.raises(EngineError, match=words):
        make(server).embed(["a", "b"])


def test_a_changed_length_is_an_error(server):
    made = make(server)
    made.embed(["a"])
    server.script = [b'{"data": [{"index": 0, "embedding": [1, 2]}]}']
    with pytest.raises(EngineError, match="expected 3"):
        made.embed(["a"])


def test_the_key_comes_from_the_environment(server, monkeypatch):
    made = make(server)
    monkeypatch.setenv("OPENAI_API_KEY", "second")
    made.embed(["a"])
    monkeypatch.setenv("COLMEM_EMBED_API_KEY", f" {SECRET}\n")
    made.embed(["a"])
    assert [seen for _, _, seen in server.requests] == ["Bearer second", f"Bearer {SECRET}"]


def test_a_broken_key_is_named_by_its_variable_only(server, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", f"{SECRET}\nX: y")
    with pytest.raises(ConfigError, match="OPENAI_API_KEY") as caught:
        make(server).embed(["a"])
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize(
    "key",
    [
        "openai:",
        "openai:http://host/v1",
        "openai:#m",
        "openai:host/v1#m",
        "openai:ftp://host#m",
        f"openai:http://me:{SECRET}@host/v1#m",
        f"openai:http://host/v1?key={SECRET}#m",
    ],
)
def test_bad_addresses(key):
    with pytest.raises(ConfigError) as caught:
        embedder(key)
    assert SECRET not in str(caught.value)


def test_a_lone_surrogate_is_refused_before_anything_is_sent(server):
    with pytest.raises(InvalidRequest, match="lone surrogate"):
        make(server).embed(["fine", "\udc80"])
    assert not server.requests
