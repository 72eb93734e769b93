"""Where a model's writes land and how far its reads see: fixed by the host, never by the model."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from colmem.contract import ROOT, Namespace, Reach


class ToolScope(msgspec.Struct, frozen=True, kw_only=True):
    """The node of every write, the reach of every read (none: everything), and whether to write."""

    place: Namespace = ROOT
    reach: Reach | None = None
    writes: bool = True

    if TYPE_CHECKING:

        def __init__(
            self, *, place: Namespace | str = ..., reach: Reach | None = ..., writes: bool = ...
        ) -> None: ...

    def __post_init__(self) -> None:
        msgspec.structs.force_setattr(self, "place", Namespace(self.place))

    @classmethod
    def at(cls, place: Namespace | str) -> ToolScope:
        """Write at a node and read from it and its ancestors."""
        return cls(place=place, reach=Reach.of(place))
