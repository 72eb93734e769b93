"""What a server reports of bulk work and snapshots, named as in the engine's own reports."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple


class IngestReport(NamedTuple):
    """Items stored, items that were held already, and seconds taken by the server."""

    stored: int
    replayed: int
    seconds: float

    @property
    def total(self) -> int:
        """Items read."""
        return self.stored + self.replayed

    @classmethod
    def of(cls, fields: Mapping[str, Any]) -> IngestReport:
        """Take the fields of the last line of progress."""
        return cls(fields["stored"], fields["replayed"], fields["seconds"])


class SnapshotReport(NamedTuple):
    """How many records were written, where, and the digest of their content."""

    exported: int
    path: str
    snapshot_id: str

    @classmethod
    def of(cls, fields: Mapping[str, Any]) -> SnapshotReport:
        """Take the fields of an answer."""
        return cls(fields["exported"], fields["path"], fields["snapshot_id"])


class HydrateReport(NamedTuple):
    """The nine counters of a hydrate."""

    loaded: int
    skipped_dupes: int
    invalid: int
    embedding_reused: int
    embedding_rebuilt: int
    embedding_missing: int
    embedding_failed: int
    annotations_merged: int
    annotation_conflicts: int

    @classmethod
    def of(cls, fields: Mapping[str, Any]) -> HydrateReport:
        """Take the fields of an answer."""
        return cls(**{name: fields[name] for name in cls._fields})
