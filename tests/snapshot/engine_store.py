"""The real engine behind what the snapshot tests ask of a store."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import colmem


class EngineStore:
    def __init__(self) -> None:
        self.engine = colmem.open(":memory:", embedder="hotmem-hash-v1")

    def close(self) -> None:
        self.engine.close()

    def hydrate(self, path: str | Path) -> Any:
        return self.engine.hydrate(path)

    def snapshot(self, path: str | Path, **options: Any) -> Any:
        return self.engine.snapshot(path, **options)

    def store(self, item: Any) -> str:
        return str(self.engine.store(item).id)

    def forget(self, ids: list[str]) -> int:
        return int(self.engine.forget(ids=ids).forgotten)

    def rows(self) -> list[dict[str, Any]]:
        return list(self.engine.records())
