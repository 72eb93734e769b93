"""The exception tree; each class has a stable ``code``.

ColmemError
  Unsupported  InvalidRequest  Unauthorized  NotFound  Conflict   the contract's variants
  Unavailable <- StoreLocked      EngineError <- CorruptStore
  ConfigError <- VersionUnsupported, MissingExtra
  SnapshotChecksumError                                           a snapshot failed verification
"""

# ruff: noqa: N818 - the names are the contract's.
from __future__ import annotations

from typing import Any, ClassVar


class ColmemError(Exception):
    """Root of everything colmem raises; prints as its class's prefix and the message.

    ``variant`` is the contract's name of the error kind; ``code`` names the class itself. Two
    errors are equal when their classes and messages are.
    """

    prefix: ClassVar[str] = ""
    variant: ClassVar[str] = "engine"
    code: ClassVar[str] = "error"
    is_transient: ClassVar[bool] = False

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message

    def __str__(self) -> str:
        return self.prefix + self.message

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ColmemError):
            return NotImplemented
        return type(self) is type(other) and self.message == other.message

    def __hash__(self) -> int:
        return hash((type(self), self.message))


class Unsupported(ColmemError):
    """The engine does not offer what was asked, such as a fetch mode."""

    prefix = "unsupported: "
    variant = code = "unsupported"


class InvalidRequest(ColmemError, ValueError):
    """A value breaks a rule; ``path`` leads to it (``$.items[3].text``) when known."""

    prefix = "invalid request: "
    variant = code = "invalid_request"

    def __init__(self, message: str, *, path: str | None = None) -> None:
        super().__init__(message)
        self.path = path


class Unauthorized(ColmemError):
    """A credential is missing or was rejected."""

    prefix = "unauthorized: "
    variant = code = "unauthorized"


class NotFound(ColmemError):
    """An addressed route or item does not exist."""

    prefix = "not found: "
    variant = code = "not_found"


class Conflict(ColmemError):
    """The write clashes with what is held."""

    prefix = "conflict: "
    variant = code = "conflict"


class Unavailable(ColmemError):
    """A passing condition; the same call may work later."""

    prefix = "unavailable: "
    variant = code = "unavailable"
    is_transient = True


class EngineError(ColmemError):
    """The engine's own failure; the message never holds a secret."""

    prefix = "engine error: "
    variant = code = "engine"


class ConfigError(ColmemError):
    """The configuration is wrong."""

    prefix = "configuration error: "
    variant = code = "config"


class StoreLocked(Unavailable):
    """Another process, or this one, has the store open for writing."""

    code = "store_locked"


class CorruptStore(EngineError):
    """A file of the store is damaged or is not what the store says it is."""

    code = "corrupt_store"


class VersionUnsupported(ConfigError):
    """The store or snapshot was written in a format this version does not read."""

    code = "version_unsupported"


class MissingExtra(ConfigError):
    """An optional dependency is needed and not installed."""

    code = "missing_extra"


class SnapshotChecksumError(ColmemError):
    """A snapshot does not verify; nothing was loaded from it."""

    prefix = "snapshot verification failed: "
    variant = "conflict"
    code = "snapshot_checksum_mismatch"

    def __init__(
        self,
        message: str,
        *,
        reason: str,
        file: str | None = None,
        expected: Any = None,
        actual: Any = None,
    ) -> None:
        super().__init__(message)
        self.reason = reason
        self.file = file
        self.expected = expected
        self.actual = actual


VARIANTS: dict[str, type[ColmemError]] = {
    cls.variant: cls
    for cls in (
        Unsupported,
        InvalidRequest,
        Unauthorized,
        NotFound,
        Conflict,
        Unavailable,
        EngineError,
        ConfigError,
    )
}
"""The contract's eight variants by name."""
