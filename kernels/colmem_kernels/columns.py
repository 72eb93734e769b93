"""Kernels over dictionary-coded columns: filter masks and facet counts.

A column is uint32 (n,) of codes, 0 meaning unset; a mask is uint8 (n,), 1 where a row is admitted.
A tag column is a ragged pair: offsets int64 (n + 1,), codes uint32 (offsets[n],). All are one pass.
"""

from __future__ import annotations

from typing import Any

import numba as nb

from colmem_kernels._jit import kernel

_U32 = nb.types.Array(nb.uint32, 1, "C", readonly=True)
_I64 = nb.types.Array(nb.int64, 1, "C", readonly=True)
_U8 = nb.types.Array(nb.uint8, 1, "C", readonly=True)
_I32 = nb.types.Array(nb.int32, 1, "C", readonly=True)
_OUT_U8 = nb.types.Array(nb.uint8, 1, "C")
_OUT_I64 = nb.types.Array(nb.int64, 1, "C")


@kernel(nb.void(_U32, nb.uint32, _OUT_U8))
def keep_equal(codes: Any, wanted: Any, mask: Any) -> None:
    """``mask[i] &= codes[i] == wanted``."""
    for i in range(mask.shape[0]):
        mask[i] &= codes[i] == wanted


@kernel(nb.void(_U32, _U8, _OUT_U8))
def keep_listed(codes: Any, wanted: Any, mask: Any) -> None:
    """``mask[i] &= wanted[codes[i]]``; wanted is uint8 (n_values + 1,)."""
    for i in range(mask.shape[0]):
        mask[i] &= wanted[codes[i]]


@kernel(nb.void(_U32, _U32, nb.uint32, nb.uint32, _U8, _OUT_U8))
def keep_under(codes: Any, parents: Any, whole: Any, bare: Any, wanted: Any, mask: Any) -> None:
    """Path rule: the value is one of two codes, or its parent folder is wanted.

    A code of 0 (a path no row has) never equals: unset rows are coded 0 and never match.
    """
    for i in range(mask.shape[0]):
        code = codes[i]
        mask[i] &= (code != 0) & ((code == whole) | (code == bare) | (wanted[parents[i]] != 0))


@kernel(nb.void(_I64, _U32, _U8, _OUT_U8))
def keep_any_tag(offsets: Any, codes: Any, wanted: Any, mask: Any) -> None:
    """``mask[i] &= any(wanted[c] for c in tags of row i)``."""
    for i in range(mask.shape[0]):
        if mask[i]:
            found = nb.uint8(0)
            for j in range(offsets[i], offsets[i + 1]):
                if wanted[codes[j]]:
                    found = nb.uint8(1)
                    break
            mask[i] = found


@kernel(nb.void(_I64, _I32, nb.int64, nb.int64, nb.int64, nb.int64, _OUT_U8))
def keep_between(
    seconds: Any, nanos: Any, after_s: Any, after_ns: Any, before_s: Any, before_ns: Any, mask: Any
) -> None:
    """``mask[i] &= after <= at[i] < before`` on (seconds, nanoseconds); unset is int64 min."""
    unset = -0x8000000000000000
    for i in range(mask.shape[0]):
        s = seconds[i]
        ns = nanos[i]
        mask[i] &= (
            (s != unset)
            & ((s > after_s) | ((s == after_s) & (ns >= after_ns)))
            & ((s < before_s) | ((s == before_s) & (ns < before_ns)))
        )


@kernel(nb.void(_I64, nb.int64, _OUT_U8))
def keep_unexpired(expires: Any, now: Any, mask: Any) -> None:
    """``mask[i] &= expires[i] > now``; never is int64 max."""
    for i in range(mask.shape[0]):
        mask[i] &= expires[i] > now


@kernel(nb.void(_U32, _U8, _OUT_I64))
def count_codes(codes: Any, mask: Any, counts: Any) -> None:
    """``counts[codes[i]] += mask[i]``; counts is int64 (n_values + 1,), code 0 counts the unset."""
    for i in range(mask.shape[0]):
        counts[codes[i]] += mask[i]


@kernel(nb.int64(_I64, _U32, _U8, _OUT_I64))
def count_tags(offsets: Any, codes: Any, mask: Any, counts: Any) -> int:
    """Count every tag of every admitted row, repeats included; returns rows without any tag."""
    missing = 0
    for i in range(mask.shape[0]):
        if mask[i]:
            if offsets[i] == offsets[i + 1]:
                missing += 1
            for j in range(offsets[i], offsets[i + 1]):
                counts[codes[j]] += 1
    return missing


@kernel(nb.void(_U32, _U32, _U32, nb.uint32, _I64, _OUT_I64))
def thread_keys(
    source_kinds: Any, threads: Any, sources: Any, conversation: Any, rows: Any, out: Any
) -> None:
    """Conversation of each row: int64 (n,), from its thread id, else its source id; -1 for none.

    Only rows whose source kind is the code ``conversation`` have one.
    """
    for i in range(rows.shape[0]):
        row = rows[i]
        out[i] = -1
        if source_kinds[row] == conversation:
            if threads[row]:
                out[i] = nb.int64(threads[row]) << 1
            elif sources[row]:
                out[i] = (nb.int64(sources[row]) << 1) | 1


@kernel(
    nb.void(
        _U32, _U32, _U32, nb.uint32, _U8, _I64, _I64, nb.int64, nb.types.Array(nb.int64, 2, "C")
    )
)
def beside(
    source_kinds: Any,
    threads: Any,
    sources: Any,
    conversation: Any,
    mask: Any,
    rows: Any,
    keys: Any,
    reach: Any,
    out: Any,
) -> None:
    """Admitted rows of the same conversation: two and one before, one and two after, else -1.

    keys : as of :func:`thread_keys`; reach : rows looked at on either side; out : int64 (n, 4).
    """
    for i in range(rows.shape[0]):
        out[i, :] = -1
        if keys[i] < 0:
            continue
        by_thread = keys[i] & 1 == 0
        code = nb.uint32(keys[i] >> 1)
        for side in range(2):
            step = 1 if side else -1
            found = 0
            row = rows[i] + step
            left = reach
            while found < 2 and left > 0 and 0 <= row < mask.shape[0]:
                same = (
                    threads[row] == code
                    if by_thread
                    else (threads[row] == 0 and sources[row] == code)
                )
                if mask[row] and same and source_kinds[row] == conversation:
                    out[i, (2 + found) if side else (1 - found)] = row
                    found += 1
                row += step
                left -= 1
