"""A contender behind a pipe, for callers in another environment: load texts, then search them.

    with RemoteContender("lancedb", dim=256) as peer:
        peer.load([{"text": "...", "scope": "a"}, ...], vectors)
        positions = peer.search("words", vector, 10, scope="a")

An item is a text and, optionally, a ``scope`` that a search can be confined to. Ids are positions
in the list that was loaded. Approximate searches are set to their greatest effort.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np

from yardstick import environments
from yardstick.contender import contender, environment_of
from yardstick.metadata import SINGLE_VALUED, TABLES, Columns, Filter
from yardstick.vectors import Vectors
from yardstick.workload import Batch

_BENCH = Path(__file__).parents[1]
SCOPE = "thread"
"""The field that a scope is kept in."""


class RemoteContender:
    """A contender in a process of its environment; its store is temporary."""

    def __init__(self, name: str, dim: int) -> None:
        folder = environments.RUN / "stores"
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = Path(tempfile.mkdtemp(dir=folder))
        python = environments.interpreter(environment_of(name))
        self._process = subprocess.Popen(
            [python, "-m", "yardstick.remote", name, self._folder, str(dim)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=_BENCH,
        )
        self.modes = frozenset(self._call({})["modes"])

    def load(self, items: Sequence[Mapping[str, Any]], vectors: Vectors) -> None:
        """Take items in, with float32 (n, dim) unit vectors; once."""
        np.save(self._folder / "vectors.npy", np.asarray(vectors, np.float32))
        listed = [[item["text"], item.get("scope")] for item in items]
        (self._folder / "items.json").write_text(json.dumps(listed))
        self._call({"load": len(listed)})

    def search(
        self, text: str, vector: Vectors, k: int, *, mode: str = "hybrid", scope: str | None = None
    ) -> list[int]:
        """Positions of the best items, best first."""
        listed = np.asarray(vector, np.float32).tolist()
        asked = {"mode": mode, "text": text, "vector": listed, "k": k, "scope": scope}
        positions: list[int] = self._call(asked)["rows"]
        return positions

    def close(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _call(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(asked) + "\n")
        self._process.stdin.flush()
        answer: dict[str, Any] = json.loads(self._process.stdout.readline() or "{}")
        if "error" in answer or not answer:
            raise RuntimeError(answer.get("error", "the contender's process ended"))
        return answer

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


class _Served:
    """The other end: a contender over a folder, answering one request a line."""

    def __init__(self, name: str, folder: Path, dim: int) -> None:
        self._folder = folder
        self._held = contender(name, folder / "store", dim)
        self._held.open()
        self._place: dict[str, int] = {}
        self._filters: dict[str, Any] = {}

    def rows_of(self, found: list[str], /) -> list[int]:
        return [self._place.get(text, -1) for text in found]

    def answer(self, asked: dict[str, Any]) -> dict[str, Any]:
        if "load" in asked:
            self._load()
        if "text" not in asked:
            return {"modes": sorted(self._held.modes)}
        vector = np.array(asked["vector"], np.float32)
        filter = self._filter(asked["scope"])
        found = self._held.search(asked["mode"], asked["text"], vector, asked["k"], filter)
        return {"rows": self._held.rows(found, self)}

    def _load(self) -> None:
        items = json.loads((self._folder / "items.json").read_text())
        texts, scopes = zip(*items, strict=True)
        known = list(dict.fromkeys(scope for scope in scopes if scope is not None))
        TABLES[SCOPE][:] = known
        number = {scope: i for i, scope in enumerate(known)}
        columns = _plain_columns(np.array([number.get(scope, -1) for scope in scopes], np.int32))
        self._place = {text: i for i, text in enumerate(texts)}
        batch = Batch(0, list(texts), np.load(self._folder / "vectors.npy"), columns)
        for first in range(0, len(batch), self._held.batch_rows):
            self._held.add(batch.part(first, self._held.batch_rows))
        self._held.finish(len(batch))
        if self._held.efforts:
            self._held.effort = self._held.efforts[-1]

    def _filter(self, scope: str | None) -> Any:
        if scope is None:
            return self._held.prepare(Filter("none"))
        if scope not in self._filters:
            self._filters[scope] = self._held.prepare(Filter("scope", SCOPE, scope))
        return self._filters[scope]


def _plain_columns(scopes: Any) -> Columns:
    """Metadata of items of which only the scope is known."""
    n = len(scopes)
    nothing = {"source_id", "language", "folder"}
    codes = {name: np.full(n, -1 if name in nothing else 0, np.int32) for name in SINGLE_VALUED} | {
        SCOPE: scopes
    }
    return Columns(codes, np.zeros(n + 1, np.int64), np.zeros(0, np.int32), np.full(n, -1))


def main() -> None:
    name, folder, dim = sys.argv[1:]
    # Whatever a package prints goes to standard error.
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    served = _Served(name, Path(folder), int(dim))
    for line in sys.stdin:
        try:
            answer = served.answer(json.loads(line))
        except Exception as error:  # noqa: BLE001 - the caller is told, and raises
            answer = {"error": f"{name}: {type(error).__name__}: {error}"}
        out.write(json.dumps(answer) + "\n")
        out.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
