"""A store worth looking at, behind a server."""

import json
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import colmem
from colmem.adapters.http.server import running
from colmem.adapters.http.settings import ServerSettings
from colmem.contract import StoreItem, decode

ITEMS: list[dict[str, Any]] = [
    {
        "type": "document",
        "title": "Releasing",
        "body": {"text": "Run the release script.\nThen watch the dashboards for ten minutes."},
        "mime": "text/markdown",
        "meta": {
            "namespace": "ws:acme",
            "folder": "/notes/ops",
            "file_path": "/notes/ops/release.md",
            "language": "en",
            "url": "https://example.org/release",
            "source": {"kind": "file", "id": "f1"},
            "tags": ["ops", "release"],
        },
    },
    {
        "type": "document",
        "title": "Backups",
        "body": {"text": "Backups run every night at two.\nRestore one each month to be sure."},
        "meta": {"namespace": "ws:acme", "folder": "/notes/ops", "tags": ["ops"]},
    },
    {
        "type": "document",
        "body": {"text": "绿茶来自中国，早晨喝最好。"},
        "meta": {"folder": "/notes/tea", "language": "zh", "tags": ["tea"]},
    },
    {
        "type": "document",
        "body": {"text": "<img src=x onerror=alert(1)> <b>bold</b> words from elsewhere"},
        "meta": {"folder": "/odd", "url": "javascript:alert(1)", "tags": ["<i>tag</i>"]},
    },
    {
        "type": "learning",
        "text": "Ann prefers green tea in the morning.",
        "kind": "preference",
        "confidence": 0.9,
        "meta": {
            "namespace": "ws:acme/user:ann",
            "tags": ["tea"],
            "observed_at": "2024-05-01T10:00:00Z",
        },
    },
    {
        "type": "conversation",
        "turns": [
            {"role": "user", "text": "Which tea should I buy?"},
            {"role": "assistant", "text": "Green tea, for Ann likes it."},
        ],
        "meta": {
            "namespace": "ws:acme/team:kitchen",
            "thread_id": "t1",
            "observed_at": "2024-06-02T08:30:00Z",
        },
    },
    *(
        {
            "type": "document",
            "body": {"text": f"Minutes of meeting {number}: the budget was discussed at length."},
            "meta": {"folder": f"/minutes/{2020 + number % 3}", "language": "en"},
        }
        for number in range(24)
    ),
]


def filled() -> Any:
    engine = colmem.open(":memory:")
    engine.store_many([decode(json.dumps(item), StoreItem) for item in ITEMS])
    return engine


class Served:
    """An engine behind a server."""

    def __init__(self, engine: Any, url: str, snapshots: Path) -> None:
        self.engine = engine
        self.url = url
        self.snapshots = snapshots


Serve = Callable[..., Served]


def serving(stack: ExitStack, engine: Any, snapshots: Path, **settings: Any) -> Served:
    stack.callback(getattr(engine, "close", bool))
    url = stack.enter_context(
        running(engine, ServerSettings(port=0, snapshots=snapshots, **settings))
    )
    return Served(engine, url, snapshots)
