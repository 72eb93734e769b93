"""The real HotMem behind a pipe: hydrate, snapshot and verify as its command line does them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any, Self

_REPOSITORY = Path(__file__).parents[2]
_COUNTERS = (
    "loaded",
    "skipped_dupes",
    "invalid",
    "embedding_reused",
    "embedding_rebuilt",
    "embedding_missing",
    "embedding_failed",
    "annotations_merged",
    "annotation_conflicts",
)


class PeerFailedError(Exception):
    """HotMem refused, or crashed."""


class Peer:
    """One HotMem process; every call names the database it is about."""

    def __init__(self) -> None:
        found = subprocess.run(
            [sys.executable, _REPOSITORY / "bench" / "peer_env.py"],
            check=True,
            capture_output=True,
            text=True,
        )
        self._process = subprocess.Popen(
            [found.stdout.strip(), Path(__file__).with_name("peer_driver.py")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()

    def hydrate(self, path: Path, db: Path) -> dict[str, int]:
        counts = _fields(self._run("hydrate", "--file", str(path), "--db", str(db)))
        return {name: int(counts[name]) for name in _COUNTERS}

    def snapshot(self, path: Path, db: Path, *options: str) -> int:
        out = self._run("snapshot", "--file", str(path), "--db", str(db), *options)
        return int(_fields(out)["exported"])

    def verify(self, path: Path) -> dict[str, str]:
        return _fields(self._run("verify", str(path)))

    def _run(self, *args: str) -> str:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(args) + "\n")
        self._process.stdin.flush()
        answer: dict[str, Any] = json.loads(self._process.stdout.readline())
        if answer["code"]:
            raise PeerFailedError(answer.get("error") or answer["out"])
        return str(answer["out"])


def _fields(out: str) -> dict[str, str]:
    line = out.strip().splitlines()[-1].split(": ", 1)[1]
    return dict(part.split("=", 1) for part in line.split(", "))
