"""Namespaces, the nodes of the tree items live in, and Reach, how far a read sees from one."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from colmem.contract.errors import InvalidRequest
from colmem.contract.limits import (
    NAMESPACE_DEPTH_MAX,
    SEGMENT_ID_CHARS_MAX,
    SEGMENT_ID_KEPT_CHARS,
)
from colmem.contract.scalars import trim
from colmem.contract.vocabulary import SegmentKind, member

_ROOT_TEXT: Final = "root"
_KINDS: Final = {kind.path_prefix: kind for kind in SegmentKind}
_ID = re.compile(rf"[A-Za-z0-9_-]{{1,{SEGMENT_ID_CHARS_MAX}}}")
_FNV_BASIS: Final = 0x811C9DC5
_FNV_PRIME: Final = 0x01000193
"""32-bit FNV-1a (Fowler, Noll, Vo)."""


class Segment(NamedTuple):
    """One step of a namespace, printed ``prefix:id``."""

    kind: SegmentKind
    id: str

    def __str__(self) -> str:
        return f"{self.kind.path_prefix}:{self.id}"

    @staticmethod
    def is_valid_id(text: str) -> bool:
        """Whether a text may be the id of a segment as it stands."""
        return _ID.fullmatch(text) is not None

    @classmethod
    def of(cls, kind: SegmentKind | str, id: str) -> Segment:
        """Make a segment, refusing an id outside the alphabet."""
        kind = member(SegmentKind, kind, "kind")
        if _ID.fullmatch(id) is None:
            raise InvalidRequest(
                f"namespace id `{id}` must be 1 to {SEGMENT_ID_CHARS_MAX} characters of "
                "A-Z, a-z, 0-9, `_` or `-`"
            )
        return cls(kind, id)

    @classmethod
    def sanitized(cls, kind: SegmentKind | str, raw: str) -> Segment:
        """Make a segment of any raw id; one that has to change gets a hash of itself appended."""
        kind = member(SegmentKind, kind, "kind")
        if _ID.fullmatch(raw):
            return cls(kind, raw)
        if not raw:
            return cls(kind, "_")
        kept = re.sub(r"[^A-Za-z0-9_-]", "-", raw)[:SEGMENT_ID_KEPT_CHARS]
        return cls(kind, f"{kept}-{fnv1a_32(raw.encode()):08x}")


class Namespace(str):
    """A path of 0 to 8 segments, as its canonical text; the empty path is ``root``.

    It is a string, so it compares, sorts and hashes as its text. Making one parses the text.
    """

    __slots__ = ()

    def __new__(cls, text: str = _ROOT_TEXT) -> Namespace:
        """Parse a path, as ``parse`` does."""
        if type(text) is Namespace:
            return text
        if not isinstance(text, str):
            raise InvalidRequest(f"a namespace must be a string, got {type(text).__name__}")
        return _parsed(text)

    @classmethod
    def parse(cls, text: str) -> Namespace:
        """Read a path; white space around it is dropped, and nothing or ``root`` is the root.

        Raises
        ------
        InvalidRequest
            With the contract's message for the first segment at fault, or for too many segments.
        """
        return cls(text)

    @classmethod
    def root(cls) -> Namespace:
        """Return the empty path."""
        return ROOT

    @classmethod
    def from_segments(cls, segments: Iterable[tuple[SegmentKind | str, str]]) -> Namespace:
        """Join segments, or pairs of kind and id, into a path."""
        return _joined([Segment.of(kind, id) for kind, id in segments])

    @classmethod
    def agent(cls, raw: str) -> Namespace:
        """Return the node of an agent below the root, of any raw agent id."""
        return _joined([Segment.sanitized(SegmentKind.AGENT, raw)])

    @property
    def segments(self) -> tuple[Segment, ...]:
        """The steps from the root."""
        if self.is_root:
            return ()
        pairs = (part.split(":", 1) for part in self.split("/"))
        return tuple(Segment(_KINDS[prefix], id) for prefix, id in pairs)

    @property
    def is_root(self) -> bool:
        """Whether this is the empty path."""
        return self is ROOT or str.__eq__(self, _ROOT_TEXT)

    @property
    def depth(self) -> int:
        """Number of segments."""
        return 0 if self.is_root else self.count("/") + 1

    def child(self, kind: SegmentKind | str, id: str) -> Namespace:
        """Return the node one segment below."""
        return _joined([*self.segments, Segment.of(kind, id)])

    def ancestors(self) -> list[Namespace]:
        """Return the nodes above this one, root first; none for the root."""
        if self.is_root:
            return []
        parts = self.split("/")
        above = ["/".join(parts[:depth]) for depth in range(1, len(parts))]
        return [ROOT, *(Namespace(path) for path in above)]

    def contains(self, other: Namespace) -> bool:
        """Whether the other node is this one or lies below it."""
        return self.is_root or other == self or other.startswith(self + "/")


def fnv1a_32(data: bytes) -> int:
    """32-bit FNV-1a hash."""
    value = _FNV_BASIS
    for byte in data:
        value = (value ^ byte) * _FNV_PRIME & 0xFFFFFFFF
    return value


def _joined(segments: list[Segment]) -> Namespace:
    if len(segments) > NAMESPACE_DEPTH_MAX:
        raise InvalidRequest(f"a namespace nests at most {NAMESPACE_DEPTH_MAX} deep")
    if not segments:
        return ROOT
    return str.__new__(Namespace, "/".join(map(str, segments)))


@lru_cache(maxsize=4096)
def _parsed(text: str) -> Namespace:
    path = trim(text)
    if path in ("", _ROOT_TEXT):
        return ROOT
    parts = path.split("/")
    for part in parts:
        prefix, colon, rest = part.partition(":")
        if not colon:
            raise InvalidRequest(f"namespace segment `{part}` must be written kind:id")
        kind = _KINDS.get(prefix)
        if kind is None:
            raise InvalidRequest(f"`{prefix}` is not a namespace segment kind")
        Segment.of(kind, rest)
    if len(parts) > NAMESPACE_DEPTH_MAX:
        raise InvalidRequest(f"a namespace nests at most {NAMESPACE_DEPTH_MAX} deep")
    return str.__new__(Namespace, path)


ROOT: Final = str.__new__(Namespace, _ROOT_TEXT)


class Reach(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """How far a read sees: a node, with its ancestors (``inherit``), with all below it."""

    at: Namespace = ROOT
    inherit: bool = True
    descendants: bool = False

    if TYPE_CHECKING:

        def __init__(
            self, *, at: Namespace | str = ..., inherit: bool = ..., descendants: bool = ...
        ) -> None: ...

    def __post_init__(self) -> None:
        if type(self.at) is not Namespace:
            msgspec.structs.force_setattr(self, "at", Namespace(self.at))
        if type(self.inherit) is not bool or type(self.descendants) is not bool:
            raise InvalidRequest("`inherit` and `descendants` of a reach must be true or false")

    @classmethod
    def of(cls, at: Namespace | str) -> Reach:
        """See the node and all its ancestors."""
        return cls(at=at)

    @classmethod
    def exact(cls, at: Namespace | str) -> Reach:
        """See the node only."""
        return cls(at=at, inherit=False)

    @classmethod
    def subtree(cls, at: Namespace | str) -> Reach:
        """See the node and everything below."""
        return cls(at=at, inherit=False, descendants=True)

    def admits(self, namespace: Namespace | str) -> bool:
        """Whether items at a node are seen."""
        namespace = Namespace(namespace)
        if namespace == self.at:
            return True
        if self.inherit and namespace.contains(self.at):
            return True
        return self.descendants and self.at.contains(namespace)

    def nodes(self) -> list[Namespace]:
        """Return the nodes readable by enumeration, root first; descendants are never listed."""
        return [*self.at.ancestors(), self.at] if self.inherit else [self.at]
