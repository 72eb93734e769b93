"""HotMem's own client, from its own environment, against our server with ``--hotmem``."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from surface_parts import Server, serving

import colmem

REPOSITORY = Path(__file__).parents[2]
DRIVER = """
import asyncio, hashlib, json, sys
from hotmem.client import AsyncHotMemClient, HotMemClient

url, name = sys.argv[1:3]
out = {}
with HotMemClient(url) as client:
    out["health"] = client.health()
    out["add"] = client.add("alice", "Alice keeps bees in Graz.", source="chat", importance=0.9,
                            metadata={"n": 1})
    out["again"] = client.add("alice", "Alice keeps bees in Graz.")
    client.add("alice", "Alice sold her car.", ttl_seconds=3600)
    client.add("bob", "Bob paints boats.")
    data = open(sys.argv[3], "rb").read()[4:10]
    out["file"] = client.add_file_ref("alice", name, byte_offset=4, byte_length=6,
        source_format="txt", source_checksum=hashlib.sha256(data).hexdigest(),
        summary="A note on honey.")
    out["search"] = client.search("who keeps bees", top_k=2)
    out["short"] = client.search("bees", top_k=5, max_chars=10)
    out["memory"] = client.get_memory(out["add"]["memory_id"])
    out["reference"] = client.get_memory(out["file"]["memory_id"])
    out["payload"] = client.hydrate_memory(out["add"]["memory_id"]).decode()
    out["range"] = client.hydrate_memory(out["file"]["memory_id"]).decode()
    out["list"] = client.list("alice")
    out["last"] = client.list("alice", order="desc", limit=1)
    out["snapshot"] = client.snapshot("out")
    out["hydrate"] = client.hydrate("out")
    out["swap"] = [client.snapshot(), client.hydrate()]

async def more():
    async with AsyncHotMemClient(url) as client:
        await client.add("carol", "Carol climbs.")
        return [await client.list("carol"), await client.search("climbs"), await client.health()]

out["async"] = asyncio.run(more())
print(json.dumps(out))
"""


@pytest.fixture(scope="module")
def peer() -> str:
    """The interpreter of HotMem's environment."""
    found = subprocess.run(
        [sys.executable, REPOSITORY / "bench" / "peer_env.py"],
        check=True,
        capture_output=True,
        text=True,
    )
    return found.stdout.strip()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("mount")
    (path / "note.txt").write_text("The honey of Graz.")
    return path


@pytest.fixture(scope="module")
def served(folder: Path) -> Iterator[Server]:
    with (
        colmem.open(":memory:") as engine,
        serving(engine, snapshots=folder, hotmem=True) as server,
    ):
        yield server


@pytest.fixture(scope="module")
def out(peer: str, served: Server, folder: Path) -> dict[str, Any]:
    ran = subprocess.run(
        [peer, "-c", DRIVER, served.url, "note.txt", folder / "note.txt"],
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert ran.returncode == 0, ran.stderr
    result: dict[str, Any] = json.loads(ran.stdout)
    return result


def test_adding(out: dict[str, Any]) -> None:
    added = out["add"]
    assert {*added} == {"memory_id", "content_hash", "trace_ms"}
    assert added["content_hash"] == colmem.content_hash("alice", "Alice keeps bees in Graz.")
    assert out["again"]["memory_id"] == added["memory_id"]


def test_searching(out: dict[str, Any]) -> None:
    best = out["search"][0]
    assert {*best} == {"role", "content", "memory_id", "identifier", "score", "created_at"}
    assert best["content"] == "Alice keeps bees in Graz."
    assert (best["role"], best["identifier"]) == ("system", "alice")
    assert best["memory_id"] == out["add"]["memory_id"]
    assert len(out["search"]) == 2
    assert [hit["content"] for hit in out["short"]] == ["Alice keep"]


def test_reading(out: dict[str, Any]) -> None:
    memory = out["memory"]
    assert memory["fact_text"] == "Alice keeps bees in Graz."
    assert (memory["source"], memory["importance"], memory["metadata"]) == ("chat", 0.9, {"n": 1})
    assert memory["memory_type"] == "fact"
    assert out["payload"] == memory["fact_text"]
    reference = out["reference"]
    assert (reference["memory_type"], reference["source_uri"]) == ("file", "note.txt")
    assert (reference["byte_offset"], reference["byte_length"]) == (4, 6)
    assert reference["fact_summary"] == "A note on honey."
    assert out["range"] == "honey "


def test_listing(out: dict[str, Any]) -> None:
    assert len(out["list"]) == 3
    first = out["list"][0]
    assert {*first} == {
        "id",
        "identifier",
        "fact_text",
        "importance",
        "metadata_json",
        "source",
        "created_at",
    }
    assert json.loads(first["metadata_json"]) == {"n": 1}
    assert [m["id"] for m in out["last"]] == [out["list"][-1]["id"]]


def test_snapshots(out: dict[str, Any], folder: Path) -> None:
    assert out["snapshot"] == {**out["snapshot"], "exported": 4, "path": "out"}
    assert (folder / "out" / "manifest.json").exists()
    assert (out["hydrate"]["loaded"], out["hydrate"]["skipped_dupes"]) == (0, 4)
    assert out["swap"][0]["path"] == "swap.jsonl"
    assert (folder / "swap.jsonl").exists()


def test_health(out: dict[str, Any]) -> None:
    health = out["health"]
    assert (health["status"], health["memory_count"], health["state"]) == ("ok", 0, "ok")
    assert health["embedding"] == {"model": "static-s256", "dim": 256}
    assert out["async"][2]["memory_count"] == 5


def test_the_asynchronous_client(out: dict[str, Any]) -> None:
    listed, found, _ = out["async"]
    assert [m["fact_text"] for m in listed] == ["Carol climbs."]
    assert found[0]["content"] == "Carol climbs."


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("POST", "/v1/add", {"identifier": "a"}, 400),
        ("POST", "/v1/add", {"identifier": "a", "fact": "x", "file_uri": "y"}, 400),
        ("POST", "/v1/add", {"identifier": "a", "file_uri": "y"}, 400),
        ("POST", "/v1/add", {"identifier": "a", "fact": "x", "importance": 2}, 400),
        ("POST", "/v1/add", {"identifier": "a", "fact": "x", "ttl_seconds": 0}, 400),
        ("POST", "/v1/add", {"identifier": "a", "fact": ""}, 400),
        ("POST", "/v1/search", {"query": "x", "top_k": 0}, 400),
        ("GET", "/v1/memories", None, 400),
        ("GET", "/v1/memories?identifier=a&order=up", None, 400),
        ("GET", "/v1/memories?identifier=a&limit=0", None, 400),
        ("GET", "/v1/memory/absent", None, 404),
        ("POST", "/v1/memory/absent/hydrate", None, 404),
    ],
)
def test_what_hotmem_refuses(
    served: Server, method: str, path: str, body: Any, status: int
) -> None:
    assert httpx.request(method, served.url + path, json=body).status_code == status


@pytest.mark.parametrize(
    "uri", ["/etc/passwd", "file:///etc/passwd", "../secret", "absent.txt", "s3://bucket/key"]
)
def test_files_outside_the_folder_are_never_read(served: Server, folder: Path, uri: str) -> None:
    (folder.parent / "secret").write_text("secret")
    body = {"identifier": "x", "file_uri": uri, "byte_offset": 0, "byte_length": 3}
    assert httpx.post(served.url + "/v1/add", json=body).status_code == 400
    record = {
        "id": uri.replace("/", "-"),
        "identifier": uri,
        "memory_type": "file",
        "fact_summary": f"s {uri}",
        "source_uri": uri,
        "byte_offset": 0,
        "byte_length": 3,
    }
    (folder / "made.jsonl").write_text(json.dumps(record) + "\n")
    loaded = httpx.post(served.url + "/v1/hydrate", json={"path": "made.jsonl"}).json()
    assert loaded["loaded"] == 1
    response = httpx.post(f"{served.url}/v1/memory/{record['id']}/hydrate")
    assert response.status_code in (400, 404)
    assert b"root" not in response.content
    assert b"sec" not in response.content.replace(uri.encode(), b"")


def test_a_range_that_changed(served: Server, folder: Path) -> None:
    (folder / "changing.txt").write_text("before")
    body = {
        "identifier": "y",
        "file_uri": "changing.txt",
        "byte_offset": 0,
        "byte_length": 6,
        "source_checksum": "0" * 64,
    }
    id = httpx.post(served.url + "/v1/add", json=body).json()["memory_id"]
    assert httpx.post(f"{served.url}/v1/memory/{id}/hydrate").status_code == 409
    (folder / "changing.txt").write_text("be")
    assert httpx.post(f"{served.url}/v1/memory/{id}/hydrate").status_code == 409
