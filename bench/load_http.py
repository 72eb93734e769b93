"""A bounded load on ``colmem serve``: many clients at once, mixed reads and writes, on loopback.

``python bench/load_http.py`` fills a store, serves it in a process of its own, and lets every
client send one request after the other for a while. It fails when a request fails, or when a write
that was answered is not there afterwards. ``--kill`` kills the server half way instead of ending
it. Prints one JSON object: requests a second, and per operation n, median, p95 and p99 in ms.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import random
import signal
import statistics
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import colmem
from colmem import Document, MemoryMeta, encode
from yardstick.texts import BUNDLED, real_sentences

SENTENCES = real_sentences(BUNDLED)
TEXT_SENTENCES = 3
QUERY_WORDS = 4
SEED = 7
# Share of each operation; writes are new items, one at a time.
MIX = {"fetch": 0.6, "list": 0.1, "get": 0.1, "explore": 0.1, "store": 0.1}


def main() -> None:
    options = parsed()
    store = options.store
    fill(store, options.items)
    server, url = started(store)
    try:
        clients = asyncio.run(load(url, options, server if options.kill else None))
    finally:
        if server.poll() is None:
            server.send_signal(signal.SIGTERM)
        server.wait(60)
    lost = check(store, clients.written)
    print(json.dumps(clients.report(options) | {"lost_writes": lost}, indent=1))
    if lost or (clients.errors and not options.kill):
        sys.exit(1)


def parsed() -> Any:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--store", type=Path, default=Path(".run/load.colmem"))
    parser.add_argument("--items", type=int, default=100_000)
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--think-ms", type=float, default=0.0, help="pause after each answer")
    parser.add_argument("--kill", action="store_true", help="kill the server half way")
    return parser.parse_args()


def fill(store: Path, n_items: int) -> None:
    """Bring a store to so many items of real sentences in random order."""
    store.parent.mkdir(exist_ok=True)
    with colmem.open(store) as engine:
        missing = n_items - engine.stats()["items"]
        if missing > 0:
            engine.ingest(documents(missing, random.Random(SEED)))


def documents(n_items: int, rng: random.Random) -> Iterator[Document]:
    for n in range(n_items):
        meta = MemoryMeta(folder=f"/f/{n % 50}", tags=[f"t{n % 7}"], language="en")
        yield colmem.document(text(rng), meta=meta)


def text(rng: random.Random) -> str:
    return " ".join(rng.choices(SENTENCES, k=TEXT_SENTENCES))


def question(rng: random.Random) -> str:
    words = rng.choice(SENTENCES).split()
    return " ".join(rng.sample(words, min(QUERY_WORDS, len(words))))


def started(store: Path) -> tuple[subprocess.Popen[str], str]:
    command = [Path(sys.executable).with_name("colmem"), "serve", store, "--port", "0"]
    server = subprocess.Popen([*map(str, command)], stderr=subprocess.PIPE, text=True)
    assert server.stderr is not None
    for line in server.stderr:
        if "serving on" in line:
            return server, line.split(" on ")[1].split(";")[0]
    raise SystemExit("the server ended before it listened")


class Clients:
    """What all clients saw."""

    def __init__(self) -> None:
        self.times_ms: dict[str, list[float]] = defaultdict(list)
        self.written: list[str] = []
        self.errors: list[str] = []

    def report(self, options: Any) -> dict[str, Any]:
        n = sum(map(len, self.times_ms.values()))
        return {
            "items": options.items,
            "clients": options.clients,
            "think_ms": options.think_ms,
            "seconds": options.seconds,
            "requests": n,
            "requests_per_second": round(n / options.seconds),
            "errors": len(self.errors),
            "first_error": (self.errors or [None])[0],
            "writes": len(self.written),
            "times_ms": {name: summary(times) for name, times in sorted(self.times_ms.items())},
            "cpu": os.cpu_count(),
            "load": os.getloadavg()[0],
            "python": platform.python_version(),
        }


def summary(times: list[float]) -> dict[str, float]:
    times.sort()
    at = {"median": 0.5, "p95": 0.95, "p99": 0.99}
    return (
        {"n": len(times)}
        | {
            name: round(times[min(len(times) - 1, int(len(times) * share))], 2)
            for name, share in at.items()
        }
        | {"mean": round(statistics.fmean(times), 2)}
    )


async def load(url: str, options: Any, victim: subprocess.Popen[str] | None) -> Clients:
    clients = Clients()
    end = time.perf_counter() + options.seconds
    work = [client(n, url, end, options, clients) for n in range(options.clients)]
    tasks = [asyncio.ensure_future(each) for each in work]
    if victim is not None:
        await asyncio.sleep(options.seconds / 2)
        victim.kill()
    await asyncio.gather(*tasks)
    return clients


async def client(n: int, url: str, end: float, options: Any, clients: Clients) -> None:
    """One keep-alive connection, spoken to by hand so that the load costs little itself."""
    rng = random.Random(n)
    host, port = url.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    known: list[str] = []
    try:
        # Not all at once: clients that pause do not begin in step.
        await asyncio.sleep(rng.random() * options.think_ms / 1000)
        while time.perf_counter() < end:
            name = rng.choices([*MIX], [*MIX.values()])[0]
            body = request(name, n, rng, known)
            head = (
                f"POST /v1/{name} HTTP/1.1\r\nhost: {host}\r\ncontent-length: {len(body)}\r\n\r\n"
            )
            started_s = time.perf_counter()
            writer.write(head.encode() + body)
            status, answer = await answered(reader)
            clients.times_ms[name].append((time.perf_counter() - started_s) * 1000)
            if status != 200:
                clients.errors.append(f"{name}: {status} {answer[:200]!r}")
            elif name == "store":
                clients.written.append(json.loads(answer)["id"])
            elif name == "fetch":
                known = [hit["id"] for hit in json.loads(answer)["hits"]]
            if options.think_ms:
                await asyncio.sleep(options.think_ms / 1000)
    except (OSError, asyncio.IncompleteReadError) as error:
        clients.errors.append(f"{type(error).__name__}: {error}")
    finally:
        writer.close()


async def answered(reader: asyncio.StreamReader) -> tuple[int, bytes]:
    head = await reader.readuntil(b"\r\n\r\n")
    size = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
    return int(head[9:12]), await reader.readexactly(size)


def request(name: str, n: int, rng: random.Random, known: list[str]) -> bytes:
    filter = {"folder": f"/f/{rng.randrange(50)}"} if rng.random() < 0.3 else {}
    match name:
        case "fetch":
            fields: Any = {"query": question(rng), "mode": "hybrid", "limit": 10, "filter": filter}
        case "list":
            fields = {"limit": 10, "filter": filter}
        case "get":
            fields = {"ids": known or ["unknown"]}
        case "explore":
            fields = {"facet": "folder", "limit": 10, "filter": filter}
        case _:
            return encode(colmem.document(f"{text(rng)} {n} {time.time_ns()}"))
    return json.dumps(fields).encode()


def check(store: Path, written: list[str]) -> int:
    """How many of the writes that were answered are not in the store."""
    with colmem.open(store, create=False) as engine:
        held: set[str] = set()
        for start in range(0, len(written), 200):
            held.update(hit.id for hit in engine.get(ids=written[start : start + 200]))
        return len(set(written) - held)


if __name__ == "__main__":
    main()
