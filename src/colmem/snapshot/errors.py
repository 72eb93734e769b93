"""What reading or writing a snapshot may raise, beside ``SnapshotChecksumError`` itself.

ColmemError
  SnapshotChecksumError   what is on disk is not what its manifest says
    PackageVerificationError
  SnapshotReadError       a payload that cannot be read
    SnapshotMissingError, SnapshotMismatchError (a delta that does not belong here)
"""

from __future__ import annotations

from typing import Any, ClassVar

from colmem.contract.errors import ColmemError, SnapshotChecksumError


class PackageVerificationError(SnapshotChecksumError):
    """An interchange package does not verify; nothing was loaded from it."""

    code = "package_verification_failed"


class SnapshotReadError(ColmemError):
    """A payload is not in its format: a broken line, bad compression, or a limit exceeded.

    ``file`` names the payload, ``line`` the first line at fault (from 1) when there is one.
    """

    prefix: ClassVar[str] = "snapshot unreadable: "
    variant = "invalid_request"
    code = "snapshot_unreadable"

    def __init__(self, message: str, *, file: str | None = None, line: int | None = None) -> None:
        super().__init__(message)
        self.file = file
        self.line = line


class SnapshotMissingError(SnapshotReadError):
    """There is nothing at the path."""

    variant = "not_found"
    code = "snapshot_missing"


class SnapshotMismatchError(SnapshotReadError):
    """A delta does not belong to the state it was to be applied to."""

    variant = "conflict"
    code = "snapshot_mismatch"


def refuse(
    reason: str,
    file: str | None,
    message: str,
    *,
    expected: Any = None,
    actual: Any = None,
    package: bool = False,
) -> SnapshotChecksumError:
    """Make the verification error of a v2 directory, a columnar or delta snapshot, or a package."""
    kind = PackageVerificationError if package else SnapshotChecksumError
    return kind(message, reason=reason, file=file, expected=expected, actual=actual)
