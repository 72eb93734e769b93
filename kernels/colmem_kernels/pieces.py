"""Document frequencies of word pieces."""

from __future__ import annotations

from typing import Any

import numba as nb

from colmem_kernels._jit import kernel

_PIECES = nb.types.Array(nb.uint16, 1, "C", readonly=True)
_OFFSETS = nb.types.Array(nb.int64, 1, "C", readonly=True)
_COUNTS = nb.types.Array(nb.int64, 1, "C")


@kernel(nb.void(_PIECES, _OFFSETS, nb.int64, _COUNTS, _COUNTS))
def count_documents(pieces: Any, offsets: Any, by: Any, last_seen: Any, frequency: Any) -> None:
    """``frequency[p] += by`` for each distinct piece p of each item.

    pieces : uint16 flat; offsets : int64 (n + 1,); last_seen : int64 (n_vocab,), filled with -1,
    scratch; frequency : int64 (n_vocab,). O(len(pieces)).
    """
    for i in range(offsets.shape[0] - 1):
        for at in range(offsets[i], offsets[i + 1]):
            piece = pieces[at]
            if last_seen[piece] != i:
                last_seen[piece] = i
                frequency[piece] += by
