"""Snapshots below one folder, and items in and out as streams."""

import json
import socket
import urllib.parse
from collections.abc import Iterator
from pathlib import Path

import httpx
import pyarrow as pa
import pytest
from surface_parts import Server, serving, token

import colmem
from colmem import MemoryMeta, Reach, encode
from colmem.adapters.http.settings import Limits
from colmem.client.exchange import lines
from colmem.client.streams import BytesReader, arrow_chunks

NDJSON = {"content-type": "application/x-ndjson"}
ARROW = {"content-type": "application/vnd.apache.arrow.stream"}
ANN = "token-of-ann-for-tests"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("served") / "snapshots"
    (path / "deep" / "er").mkdir(parents=True)
    (path / "out").symlink_to(path.parent)
    return path


@pytest.fixture(scope="module")
def api(folder: Path) -> Iterator[httpx.Client]:
    """A server of five notes; every test names snapshots of its own."""
    store = folder.parent / "s.colmem"
    with (
        colmem.open(store) as engine,
        serving(engine, store=store, snapshots=folder) as server,
        httpx.Client(base_url=server.url) as client,
    ):
        engine.store_many([colmem.document(f"note {n}") for n in range(5)])
        yield client


@pytest.mark.parametrize(
    ("fields", "made"),
    [
        ({"path": "a"}, "a/manifest.json"),
        ({"path": "deep/er/a.jsonl"}, "deep/er/a.jsonl"),
        ({"file": "b.jsonl.gz"}, "b.jsonl.gz"),
        ({}, "swap.jsonl"),
        ({"path": "c", "format": "columnar"}, "c/manifest.json"),
        ({"path": "d", "package": True, "gz": True}, "d/memories.jsonl.gz"),
    ],
)
def test_a_snapshot_and_back(
    api: httpx.Client, folder: Path, fields: dict[str, object], made: str
) -> None:
    written = api.post("/v1/snapshot", json=fields)
    assert written.json()["exported"] == 5
    assert (folder / made).exists()
    path = {"path": written.json()["path"]}
    if not made.startswith(("deep", "b", "swap")):
        verified = api.post("/v1/verify", json=path).json()
        assert (verified["valid"], verified["record_count"]) == (True, 5)
    loaded = api.post("/v1/hydrate", json=path).json()
    assert (loaded["loaded"], loaded["skipped_dupes"], loaded["path"]) == (0, 5, path["path"])


@pytest.mark.parametrize(
    "path",
    ["..", "../x", ".", "", "a/../..", "/etc/passwd", "../s.colmem", "../s.colmem/x", "out", "\0"],
)
@pytest.mark.parametrize("name", ["snapshot", "hydrate", "verify"])
def test_nothing_outside_the_folder(api: httpx.Client, folder: Path, path: str, name: str) -> None:
    before = sorted(folder.parent.rglob("*"))
    response = api.post(f"/v1/{name}", json={"path": path})
    assert (response.status_code, response.json()["path"]) == (400, "$.path")
    assert "is not below the server's snapshot folder" in response.json()["message"]
    assert sorted(folder.parent.rglob("*")) == before


def test_the_store_itself_is_out_of_bounds(tmp_path: Path) -> None:
    store = tmp_path / "in" / "s.colmem"
    store.parent.mkdir()
    with colmem.open(store) as engine, serving(engine, store=store, snapshots=tmp_path) as server:
        for path in ("in", "in/s.colmem", "in/s.colmem/x"):
            response = httpx.post(server.url + "/v1/snapshot", json={"path": path})
            assert response.status_code == 400
            assert "is the store itself" in response.json()["message"]


def test_a_snapshot_that_does_not_verify(api: httpx.Client, folder: Path) -> None:
    api.post("/v1/snapshot", json={"path": "damaged"})
    payload = folder / "damaged" / "memories.jsonl"
    payload.write_bytes(payload.read_bytes().replace(b"note 1", b"note 9"))
    for name in ("verify", "hydrate"):
        response = api.post(f"/v1/{name}", json={"path": "damaged"})
        assert response.status_code == 409
        body = response.json()
        assert [*body] == ["error", "reason", "file", "expected", "actual", "message"]
        assert body["error"] == "snapshot_checksum_mismatch"
        assert (body["reason"], body["file"]) == ("mismatch", "memories.jsonl")
        assert len(body["expected"]) == len(body["actual"]) == 64
        assert str(folder) not in response.text


def test_a_package_that_does_not_verify(api: httpx.Client, folder: Path) -> None:
    api.post("/v1/snapshot", json={"path": "p", "format": "package"})
    (folder / "p" / "memories.jsonl").write_text("")
    body = api.post("/v1/hydrate", json={"path": "p"})
    assert (body.status_code, body.json()["error"]) == (409, "package_verification_failed")


def test_snapshots_that_cannot_be_read(api: httpx.Client, folder: Path) -> None:
    absent = api.post("/v1/hydrate", json={"path": "absent"})
    assert (absent.status_code, absent.json()["error"]) == (404, "not_found")
    (folder / "bad.jsonl").write_text("{\n")
    (folder / "bad.jsonl.gz").write_text("no gzip")
    for name in ("bad.jsonl", "bad.jsonl.gz"):
        response = api.post("/v1/hydrate", json={"path": name})
        assert response.status_code == 400
        assert response.json()["detail"] == response.json()["message"]
        assert str(folder) not in response.text
    response = api.post("/v1/snapshot", json={"path": "x", "format": "tar"})
    assert response.json()["path"] == "$.format"


def test_progress_comes_as_lines_when_asked_for(api: httpx.Client) -> None:
    headers = {"accept": "application/x-ndjson"}
    for name, key in (("snapshot", "exported"), ("verify", "valid"), ("hydrate", "loaded")):
        response = api.post(f"/v1/{name}", json={"path": "lines"}, headers=headers)
        assert response.headers["content-type"] == "application/x-ndjson"
        assert key in json.loads(response.text.splitlines()[-1])


def test_items_in_and_out_as_lines(server: Server) -> None:
    items = [
        colmem.document("body\u2028 with odd breaks", title="T", mime="text/x"),
        colmem.learning("a fact", confidence=0.3, evidence="e"),
        colmem.conversation([("user", "hi")], meta=MemoryMeta(thread_id="t", namespace="user:a")),
    ]
    body = b"".join(lines(items))
    response = httpx.post(server.url + "/v1/ingest", content=b"\n" + body + b"\n", headers=NDJSON)
    assert {**response.json(), "seconds": 0} == {
        "total": 3,
        "stored": 3,
        "replayed": 0,
        "seconds": 0,
    }
    out = httpx.get(server.url + "/v1/export")
    assert out.headers["content-type"] == "application/x-ndjson"
    assert out.content == body
    chosen = urllib.parse.quote('{"kinds":["learning"]}')
    assert httpx.get(f"{server.url}/v1/export?filter={chosen}").content == encode(items[1]) + b"\n"
    empty = httpx.post(server.url + "/v1/ingest", content=b"", headers=NDJSON)
    assert empty.json()["total"] == 0


def test_items_in_and_out_as_arrow(server: Server) -> None:
    table = pa.table({"text": ["one", "two"], "namespace": [None, "user:a"], "tags": [["x"], []]})
    sent = httpx.post(server.url + "/v1/ingest", content=arrow_chunks(table), headers=ARROW)
    assert sent.json()["stored"] == 2
    out = httpx.get(server.url + "/v1/export?format=arrow&embeddings=true")
    assert out.headers["content-type"] == ARROW["content-type"]
    read = pa.ipc.open_stream(BytesReader(iter([out.content]))).read_all()
    assert read.column("text").to_pylist() == ["one", "two"]
    assert len(read.column("embedding")[0]) == 256


@pytest.mark.parametrize(
    ("body", "headers", "path"),
    [
        (b'{"type":"document","body":{"text":"a"}}\n{"type":"x"}', NDJSON, "$[1].type"),
        (b"[", NDJSON, "$[0]"),
        (b'{"type":"learning"}', NDJSON, "$[0]"),
        (b"no arrow at all, but long enough to look like a message", ARROW, None),
        (b"", ARROW, None),
    ],
)
def test_streams_that_are_wrong(
    http: httpx.Client, body: bytes, headers: dict[str, str], path: str | None
) -> None:
    response = http.post("/v1/ingest", content=body, headers=headers)
    assert (response.status_code, response.json().get("path")) == (400, path)


def test_an_error_after_progress_is_the_last_line(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("colmem.adapters.http.work._REPORT_SECONDS", 0.0)
    monkeypatch.setattr("colmem.adapters.http.work._REPORT_SHARE", 0.0)
    body = b"".join(lines(colmem.document(f"n{n}") for n in range(100))) + b"oops\n"
    response = httpx.post(server.url + "/v1/ingest?batch_size=10", content=body, headers=NDJSON)
    assert response.status_code == 200
    printed = [json.loads(line) for line in response.text.splitlines()]
    assert printed[0] == {"total": 10}
    assert printed[-1]["error"] == "invalid_request"
    assert printed[-1]["path"] == "$[100]"
    assert server.engine.stats()["items"] == 100


def test_a_line_beyond_the_limit() -> None:
    with (
        colmem.open(":memory:") as engine,
        serving(engine, limits=Limits(body_bytes_max=1000, message_bytes_max=1000)) as server,
    ):
        response = httpx.post(server.url + "/v1/ingest", content=b"x" * 5000, headers=NDJSON)
        assert response.status_code == 413
        table = pa.table({"text": ["x" * 5000]})
        sent = httpx.post(server.url + "/v1/ingest", content=arrow_chunks(table), headers=ARROW)
        assert sent.status_code == 400
        assert "use more batches" in sent.json()["message"]


def test_a_body_that_stops_coming() -> None:
    with (
        colmem.open(":memory:") as engine,
        serving(engine, limits=Limits(idle_seconds=1)) as server,
    ):
        host, port = server.url.removeprefix("http://").split(":")
        for path in ("ingest", "store"):
            with socket.create_connection((host, int(port))) as peer:
                head = f"POST /v1/{path} HTTP/1.1\r\nhost: {host}\r\ncontent-length: 100\r\n\r\nabc"
                peer.sendall(head.encode())
                assert b"400" in peer.recv(1000).splitlines()[0]


def test_confined_streams() -> None:
    scope = {"place": "user:ann", "reach": Reach.exact("user:ann")}
    with (
        colmem.open(":memory:") as engine,
        serving(engine, tokens=(token(ANN, **scope),)) as server,
        httpx.Client(base_url=server.url, headers={"authorization": f"Bearer {ANN}"}) as api,
    ):
        engine.store(colmem.document("of the root"))
        engine.store(colmem.document("of bob", meta=MemoryMeta(namespace="user:bob")))
        mine = colmem.document("of ann")
        assert api.post("/v1/ingest", content=encode(mine), headers=NDJSON).json()["stored"] == 1
        placed = mine.replace(meta=MemoryMeta(namespace="user:ann"))
        table = pa.table({"text": ["by arrow"]})
        sent = api.post("/v1/ingest", content=arrow_chunks(table), headers=ARROW)
        assert sent.json()["stored"] == 1
        for namespace in ("user:bob", "user:ann/agent:x"):
            other = mine.replace(meta=MemoryMeta(namespace=namespace))
            response = api.post("/v1/ingest", content=encode(other), headers=NDJSON)
            assert response.status_code == 403
            table = pa.table({"text": ["x"], "namespace": [namespace]})
            response = api.post("/v1/ingest", content=arrow_chunks(table), headers=ARROW)
            assert response.status_code == 403
        lines_out = api.get("/v1/export").content.splitlines()
        assert lines_out[0] == encode(placed)
        assert len(lines_out) == 2
        for reach in ("user:bob", "root"):
            asked = urllib.parse.quote(f'{{"reach":{{"at":"{reach}","inherit":false}}}}')
            assert api.get(f"/v1/export?filter={asked}").content == b""
        read = pa.ipc.open_stream(api.get("/v1/export?format=arrow").content).read_all()
        assert read.column("namespace").to_pylist() == ["user:ann", "user:ann"]
