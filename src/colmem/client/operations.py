"""The contract's operations as they cross a wire: their names, what they take, what they answer.

The server and the clients read this one table. Nothing here does input or output.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from colmem.contract import (
    EngineDescriptor,
    EngineHealth,
    ExplorePage,
    ExploreRequest,
    FetchPage,
    FetchRequest,
    ForgetReport,
    ForgetTarget,
    GetRequest,
    Hit,
    ListPage,
    ListRequest,
    RecallAnswer,
    RecallRequest,
    StoreItem,
    StoreReceipt,
)


class Operation(NamedTuple):
    """An operation of the contract; ``request`` is None when it takes nothing.

    ``writes`` says that it changes the store.
    """

    name: str
    request: Any
    answer: Any
    writes: bool = False

    @property
    def path(self) -> str:
        """Where it is served."""
        return f"/v1/{self.name}"


OPERATIONS: Final = {
    operation.name: operation
    for operation in (
        Operation("store", StoreItem, StoreReceipt, writes=True),
        Operation("store_many", list[StoreItem], list[StoreReceipt], writes=True),
        Operation("fetch", FetchRequest, FetchPage),
        Operation("recall", RecallRequest, RecallAnswer),
        Operation("list", ListRequest, ListPage),
        Operation("get", GetRequest, list[Hit]),
        Operation("forget", ForgetTarget, ForgetReport, writes=True),
        Operation("explore", ExploreRequest, ExplorePage),
        Operation("health", None, EngineHealth),
        Operation("descriptor", None, EngineDescriptor),
    )
}
"""All operations by name."""

JSON: Final = "application/json"
NDJSON: Final = "application/x-ndjson"
ARROW: Final = "application/vnd.apache.arrow.stream"
"""Media types of the wire."""
