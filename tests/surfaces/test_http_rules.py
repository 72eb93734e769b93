"""What the server does around the operations: statuses, hosts, origins, tokens, limits, counts."""

import concurrent.futures
import json
import logging
import threading
from pathlib import Path
from typing import Any

import httpx
import pytest
from surface_parts import Server, serving, token

import colmem
from colmem import ConfigError, MemoryMeta
from colmem.adapters.http.app import create_app
from colmem.adapters.http.errors import HTTP_STATUS, STATUS, error_response
from colmem.adapters.http.server import running
from colmem.adapters.http.settings import Limits, ServerSettings, host_name, is_loopback
from colmem.adapters.http.tokens import Token, read_tokens
from colmem.contract import VARIANTS
from colmem.reference import ReferenceEngine

FULL = "full-token-for-tests"
READER = "reading-token-for-tests"
ANN = "token-of-ann-for-tests"
ITEM = b'{"type":"document","body":{"text":"hello"}}'


def test_every_variant_has_a_status() -> None:
    assert {*STATUS} == {*VARIANTS}
    for name, variant in VARIANTS.items():
        response = error_response(variant("words"))
        assert response.status_code == STATUS[name]
        assert json.loads(response.body) == {"error": name, "message": "words"}
    assert {*HTTP_STATUS.values()} == {403, 405, 413, 415}


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "error"),
    [
        ("POST", "/v1/store", b"{}", 400, "invalid_request"),
        ("POST", "/v1/store", b"", 400, "invalid_request"),
        ("POST", "/v1/store", b"\xff", 400, "invalid_request"),
        ("POST", "/v1/list", b'{"limit":1,"limit":2}', 400, "invalid_request"),
        ("GET", "/v1/nothing", None, 404, "not_found"),
        ("GET", "/v1/store", None, 405, "unsupported"),
        ("OPTIONS", "/v1/store", None, 405, "unsupported"),
        ("POST", "/v1/snapshot", b'{"path":"a"}', 422, "unsupported"),
        ("POST", "/v1/add", b"{}", 404, "not_found"),
        ("GET", "/v1/export?format=xml", None, 400, "invalid_request"),
        ("GET", "/v1/export?filter=%7B", None, 400, "invalid_request"),
        ("POST", "/v1/ingest?batch_size=0", b"", 400, "invalid_request"),
        ("POST", "/v1/tools/memory_nothing", b"{}", 400, "invalid_request"),
    ],
)
def test_errors(
    http: httpx.Client, method: str, path: str, body: bytes | None, status: int, error: str
) -> None:
    response = http.request(method, path, content=body)
    assert (response.status_code, response.json()["error"]) == (status, error)
    assert response.headers["content-type"] == "application/json"
    assert response.json()["message"]


def test_the_path_of_the_value_at_fault(http: httpx.Client) -> None:
    response = http.post("/v1/list", json={"limit": 1, "filter": {"tags_any": [1]}})
    assert response.json()["path"] == "$.filter.tags_any[0]"


def test_a_method_that_is_not_served_names_those_that_are(http: httpx.Client) -> None:
    assert http.get("/v1/fetch").headers["allow"] == "POST"


def test_store_many_in_both_spellings(http: httpx.Client) -> None:
    first = http.post("/v1/store_many", content=b"[" + ITEM + b"]").json()
    second = http.post("/v1/store_many", content=b'{"items":[' + ITEM + b"]}").json()
    assert second == [{"id": first[0]["id"], "replayed": True}]


def test_only_json_is_read_as_json(http: httpx.Client) -> None:
    for declared in ("text/plain", "application/x-www-form-urlencoded"):
        response = http.post("/v1/store", content=ITEM, headers={"content-type": declared})
        assert response.status_code == 415
    response = http.post("/v1/ingest", content=ITEM, headers={"content-type": "text/csv"})
    assert response.status_code == 415


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8711", "127.0.0.1.evil.example"])
def test_a_rebound_name_is_turned_away(http: httpx.Client, host: str) -> None:
    response = http.post("/v1/store", content=ITEM, headers={"host": host})
    assert response.status_code == 400
    assert "is not served here" in response.json()["message"]


@pytest.mark.parametrize(
    "host", ["localhost", "LOCALHOST:1", "127.0.0.1:80", "[::1]:80", "10.0.0.7"]
)
def test_addresses_and_localhost_are_served(http: httpx.Client, host: str) -> None:
    assert http.get("/v1/health", headers={"host": host}).status_code == 200


def test_a_name_that_is_allowed() -> None:
    settings = ServerSettings(hosts=frozenset({"memory.example"}))
    assert settings.serves_host("Memory.Example:443")
    assert not settings.serves_host("")
    assert host_name("[fe80::1]:80") == "fe80::1"


def test_pages_of_other_origins_are_turned_away(http: httpx.Client, shared: Server) -> None:
    for origin in ("https://evil.example", "null", shared.url.replace("http", "http:/")):
        response = http.post("/v1/store", content=ITEM, headers={"origin": origin})
        assert response.status_code == 403
        assert "access-control-allow-origin" not in response.headers
    assert http.get("/v1/health", headers={"origin": shared.url}).status_code == 200


def test_other_machines_need_tokens() -> None:
    with pytest.raises(ConfigError, match="needs tokens"):
        create_app(ReferenceEngine(), ServerSettings(host="0.0.0.0"))
    create_app(ReferenceEngine(), ServerSettings(host="0.0.0.0", tokens=(token(FULL),)))
    assert is_loopback("127.9.9.9")
    assert is_loopback("::1")
    assert is_loopback("localhost")
    assert not is_loopback("example.org")


def test_an_address_in_use() -> None:
    with running(ReferenceEngine()) as url:
        port = int(url.rpartition(":")[2])
        with (
            pytest.raises(ConfigError, match=f"cannot listen on 127.0.0.1:{port}"),
            running(ReferenceEngine(), ServerSettings(port=port)),
        ):
            pass


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Any:
    tokens = (
        token(FULL),
        token(READER, writes=False),
        token(ANN, place="user:ann", reach=colmem.Reach.exact("user:ann")),
    )
    folder = tmp_path_factory.mktemp("snapshots")
    with (
        colmem.open(":memory:") as engine,
        serving(engine, tokens=tokens, snapshots=folder, hotmem=True) as server,
    ):
        yield server


def bearer(text: str) -> dict[str, str]:
    return {"authorization": f"Bearer {text}"}


@pytest.mark.parametrize("headers", [{}, bearer("x" * 20), {"authorization": f"Basic {FULL}"}])
@pytest.mark.parametrize(
    "path", ["/v1/health", "/v1/stats", "/metrics", "/v1/openapi.json", "/v1/no"]
)
def test_nothing_is_said_without_a_token(
    guarded: Server, path: str, headers: dict[str, str]
) -> None:
    response = httpx.get(guarded.url + path, headers=headers)
    assert response.status_code == 401
    assert response.headers["www-authenticate"] == "Bearer"


def test_a_token_that_may_do_everything(guarded: Server) -> None:
    with httpx.Client(base_url=guarded.url, headers=bearer(FULL)) as http:
        assert http.post("/v1/store", content=ITEM).status_code == 200
        assert http.get("/metrics").status_code == 200
        assert http.post("/v1/snapshot", json={"path": "x"}).status_code == 200
        assert http.get("/v1/openapi.json").json()["security"] == [{"token": []}]


def test_a_token_that_may_only_read(guarded: Server) -> None:
    with httpx.Client(base_url=guarded.url, headers=bearer(READER)) as http:
        assert http.post("/v1/list", json={"limit": 1}).status_code == 200
        for path, body in (
            ("/v1/store", ITEM),
            ("/v1/store_many", b"[" + ITEM + b"]"),
            ("/v1/forget", b'{"ids":["x"]}'),
            ("/v1/snapshot", b"{}"),
            ("/v1/hydrate", b"{}"),
            ("/v1/add", b'{"identifier":"a","fact":"b"}'),
        ):
            response = http.post(path, content=body)
            assert (response.status_code, response.json()["error"]) == (403, "unauthorized")
            assert "read-only" in response.json()["message"]
        ndjson = {"content-type": "application/x-ndjson"}
        assert http.post("/v1/ingest", content=ITEM, headers=ndjson).status_code == 403
        names = [tool["name"] for tool in http.get("/v1/tools").json()["tools"]]
        assert "memory_store" not in names
        refused = http.post("/v1/tools/memory_store", json={"learning": {"text": "x"}})
        assert refused.json()["message"].endswith("these memory tools are read-only")


def test_a_confined_token_does_not_see_the_whole(guarded: Server) -> None:
    with httpx.Client(base_url=guarded.url, headers=bearer(ANN)) as http:
        for method, path in (
            ("GET", "/metrics"),
            ("POST", "/v1/snapshot"),
            ("POST", "/v1/hydrate"),
            ("POST", "/v1/verify"),
            ("POST", "/v1/search"),
            ("POST", "/v1/add"),
            ("GET", "/v1/memories?identifier=x"),
            ("GET", "/v1/memory/x"),
            ("POST", "/v1/memory/x/hydrate"),
        ):
            response = http.request(method, path, content=b"{}" if method == "POST" else None)
            assert response.status_code == 403, path
        assert http.get("/v1/stats").json() == {"items": 0, "kinds": {}}
        assert http.get("/v1/health").json() == {"state": "ok"}


def test_no_token_is_ever_logged(
    guarded: Server, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG)
    texts = [FULL, "unknown-token-for-tests"]
    answers = [httpx.get(guarded.url + "/v1/list", headers=bearer(text)).text for text in texts]
    seen = "".join([*capfd.readouterr(), *answers, repr(token(FULL)), str(token(FULL))])
    server_side = [record for record in caplog.records if "colmem" in record.name]
    seen += "".join(record.getMessage() for record in server_side)
    assert not any(text in seen for text in texts)


def test_token_files(tmp_path: Path) -> None:
    path = tmp_path / "tokens.json"
    secret = "0123456789abcdef-ann"
    digest = Token.of(secret).digest.hex()
    entries = [
        {"name": "all", "token": FULL},
        {"name": "ann", "sha256": digest, "place": "user:ann", "writes": False},
        {"name": "wide", "token": "x" * 16, "place": "user:bob", "reach": None},
        {"name": "tree", "token": "y" * 16, "reach": {"at": "ws:a", "descendants": True}},
    ]
    path.write_text(json.dumps(entries))
    everything, ann, wide, tree = read_tokens(path)
    assert everything.scope.reach is None
    assert everything.scope.writes
    assert ann == Token.of(secret, ann.scope, "ann")
    assert ann.scope.reach == colmem.Reach.of("user:ann")
    assert not ann.scope.writes
    assert wide.scope.reach is None
    assert tree.scope.reach == colmem.Reach(at="ws:a", descendants=True)


@pytest.mark.parametrize(
    "content",
    [
        "[]",
        "{}",
        '[{"name":"a"}]',
        '[{"name":"a","token":"short"}]',
        '[{"name":"a","token":"0123456789abcdef","sha256":"00"}]',
        '[{"name":"a","sha256":"00"}]',
        '[{"name":"a","token":"0123456789abcdef","place":"nowhere"}]',
        '[{"name":"a","token":"0123456789abcdef","palce":"user:a"}]',
        '[{"name":"a","token":"0123456789abcdef"},{"name":"b","token":"0123456789abcdef"}]',
    ],
)
def test_token_files_that_are_wrong(tmp_path: Path, content: str) -> None:
    path = tmp_path / "tokens.json"
    path.write_text(content)
    with pytest.raises(ConfigError) as caught:
        read_tokens(path)
    assert "0123456789abcdef" not in str(caught.value)
    with pytest.raises(ConfigError, match="cannot be read"):
        read_tokens(tmp_path / "absent.json")


class Waiting(ReferenceEngine):
    """Lists only when it is let."""

    def __init__(self) -> None:
        super().__init__()
        self.go = threading.Event()
        self.entered = threading.Semaphore(0)

    def list(self, *args: Any, **fields: Any) -> Any:
        self.entered.release()
        self.go.wait(20)
        return super().list(*args, **fields)


def test_a_body_that_is_too_large() -> None:
    limits = Limits(body_bytes_max=1000)
    large = b'{"type":"document","body":{"text":"' + b"x" * 2000 + b'"}}'
    with serving(ReferenceEngine(), limits=limits) as server:
        declared = httpx.post(server.url + "/v1/store", content=large)
        assert (declared.status_code, declared.json()["error"]) == (413, "invalid_request")
        chunked = httpx.post(server.url + "/v1/store", content=iter([large[:900], large[900:]]))
        assert chunked.status_code == 413


def test_more_requests_than_are_served() -> None:
    engine = Waiting()
    with (
        serving(engine, limits=Limits(requests_max=2)) as server,
        concurrent.futures.ThreadPoolExecutor(2) as threads,
    ):
        url = server.url + "/v1/list"
        waiting = [threads.submit(httpx.post, url, json={"limit": 1}) for _ in range(2)]
        for _ in waiting:
            assert engine.entered.acquire(timeout=10)
        busy = httpx.get(server.url + "/v1/health")
        assert (busy.status_code, busy.json()["error"]) == (503, "unavailable")
        assert busy.headers["retry-after"] == "1"
        engine.go.set()
        assert [future.result().status_code for future in waiting] == [200, 200]
        assert httpx.get(server.url + "/v1/health").status_code == 200


def test_an_operation_that_takes_too_long() -> None:
    engine = Waiting()
    with serving(engine, limits=Limits(timeout_seconds=0.1)) as server:
        response = httpx.post(server.url + "/v1/list", json={"limit": 1})
        assert response.status_code == 503
        assert "no answer within 0.1 seconds" in response.json()["message"]
        engine.go.set()


def test_stopping_waits_for_what_runs() -> None:
    engine = Waiting()
    with concurrent.futures.ThreadPoolExecutor(1) as threads:
        with serving(engine) as server:
            waiting = threads.submit(httpx.post, server.url + "/v1/list", json={"limit": 1})
            assert engine.entered.acquire(timeout=10)
            threading.Timer(0.3, engine.go.set).start()
        assert waiting.result().status_code == 200


def test_an_unexpected_failure_says_nothing_of_what_is_stored(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Failing(ReferenceEngine):
        def list(self, *args: Any, **fields: Any) -> Any:
            raise KeyError("".join(["pri", "vate"]))

    with serving(Failing()) as server:
        response = httpx.post(server.url + "/v1/list", json={"limit": 1})
    assert response.status_code == 500
    assert response.json()["error"] == "engine"
    assert "KeyError" in response.text
    assert "private" not in response.text + caplog.text
    assert "in list" in caplog.text


def test_counts(server: Server) -> None:
    for body in (b'{"limit":1}', b'{"limit":0}'):
        httpx.post(server.url + "/v1/list", content=body)
    server.engine.store(colmem.document("x", meta=MemoryMeta(tags=["t"])))
    text = httpx.get(server.url + "/metrics").text
    assert 'colmem_http_requests_total{route="list",status="200"} 1\n' in text
    assert 'colmem_http_requests_total{route="list",status="400"} 1\n' in text
    assert 'colmem_http_request_seconds_bucket{route="list",le="+Inf"} 2\n' in text
    assert 'colmem_http_request_seconds_count{route="list"} 2\n' in text
    assert "colmem_http_requests_in_flight 1\n" in text
    assert "colmem_store_items 1\n" in text
    for line in text.splitlines():
        assert line.startswith("#") or len(line.rsplit(" ", 1)) == 2
    stats = httpx.get(server.url + "/v1/stats").json()
    assert stats["items"] == 1
    assert "path" not in stats


def test_health_and_descriptor_in_both_methods(http: httpx.Client) -> None:
    for path in ("/v1/health", "/v1/descriptor"):
        assert http.get(path).json() == http.post(path).json()
    assert http.get("/v1/descriptor").json()["default_endpoint"] is None
