"""Bounds on what a snapshot may ask of its reader: a setting each, with a clear error beyond it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """Every bound of the readers.

    ``line_bytes_max`` : one line of a payload. ``nesting_max`` : levels of arrays and objects in a
    line; at most 800, so that the interpreter's own stack is never the limit. ``digits_max`` :
    digits of one integer (Python's own default bound). ``payload_bytes_max`` : a payload after
    decompression. ``manifest_bytes_max`` : a manifest, which is read whole.
    """

    line_bytes_max: int = 256 << 20
    nesting_max: int = 800
    digits_max: int = 4300
    payload_bytes_max: int = 1 << 40
    manifest_bytes_max: int = 1 << 30


DEFAULT_LIMITS = Limits()
BATCH_RECORDS = 1000
"""Records of a batch, as the format counts them: duplicates within one are dropped at once."""
