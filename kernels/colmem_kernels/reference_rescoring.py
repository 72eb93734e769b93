"""NumPy twins of the kernels of rescoring.py: the test oracle, and readable definitions."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt


def maxsim(
    table: npt.NDArray[np.int8],
    inverse_norms: npt.NDArray[np.float32],
    query: npt.NDArray[np.int16],
    scales: npt.NDArray[np.float32],
    weights: npt.NDArray[np.float32],
    pieces: npt.NDArray[np.uint16],
    offsets: npt.NDArray[np.int64],
    n_opening: int,
    opening_share: float,
    slots: npt.NDArray[np.int32],
    cosines: npt.NDArray[np.float32],
    out: npt.NDArray[np.float32],
) -> None:
    """Twin of :func:`colmem_kernels.rescoring.maxsim`; leaves the scratch arrays alone."""
    del slots, cosines
    unit = query.astype(np.float32) * scales[:, None]
    for i in range(len(out)):
        own = pieces[offsets[i] : offsets[i + 1]]
        if len(own) == 0:
            out[i] = 0
            continue
        rows = table[own].astype(np.float32) * inverse_norms[own][:, None]
        whole = weights @ np.maximum((rows @ unit.T).max(axis=0), 0)
        opening = weights @ np.maximum((rows[:n_opening] @ unit.T).max(axis=0, initial=0), 0)
        out[i] = (1 - opening_share) * whole + opening_share * opening


def distinct_cosines(
    table: npt.NDArray[np.int8],
    scales: npt.NDArray[np.float32],
    query: npt.NDArray[np.float32],
    pieces: npt.NDArray[np.uint16],
    offsets: npt.NDArray[np.int64],
    seen: npt.NDArray[np.int32],
    total: npt.NDArray[np.float32],
    out: npt.NDArray[np.float32],
) -> None:
    """Twin of :func:`colmem_kernels.rescoring.distinct_cosines`; leaves the scratch alone."""
    del seen, total
    for i in range(len(out)):
        own = np.unique(pieces[offsets[i] : offsets[i + 1]])
        pooled = (table[own].astype(np.float32) * scales[own][:, None]).sum(axis=0)
        norm = np.linalg.norm(pooled)
        out[i] = pooled @ query / norm if norm > 0 else 0


def mark_turns(
    pieces: npt.NDArray[np.uint16],
    offsets: npt.NDArray[np.int64],
    in_query: npt.NDArray[np.uint8],
    colon: int,
    question_mark: int,
    name_pieces_max: int,
    out: npt.NDArray[np.uint8],
) -> None:
    """Twin of :func:`colmem_kernels.rescoring.mark_turns`."""
    for i in range(len(out)):
        own = pieces[offsets[i] : offsets[i + 1]].tolist()
        name = own[: own.index(colon)] if colon in own else []
        is_named = 0 < len(name) <= name_pieces_max and bool(in_query[name].all())
        out[i] = is_named + 2 * (question_mark in own)


def lend_scores(
    rows: npt.NDArray[np.int64],
    scores: npt.NDArray[np.float32],
    by_row: npt.NDArray[np.int64],
    by_thread: npt.NDArray[np.int64],
    threads: npt.NDArray[np.int64],
    beside: npt.NDArray[np.int64],
    marks: npt.NDArray[np.uint8],
    weights: npt.NDArray[np.float32],
    out: npt.NDArray[np.float32],
) -> None:
    """Twin of :func:`colmem_kernels.rescoring.lend_scores`; needs neither order."""
    del by_row, by_thread
    place = {row: i for i, row in enumerate(rows.tolist())}
    share = [weights[2], weights[0], weights[1], weights[2]]
    for i in range(len(rows)):
        out[i] = 0
        if threads[i] < 0:
            continue
        near = [place.get(row) for row in beside[i].tolist()]
        gain = sum(w * scores[at] for w, at in zip(share, near, strict=True) if at is not None)
        if near[1] is not None and marks[near[1]] & 2:
            gain += weights[3] * scores[near[1]]
        gain += weights[4] * scores[threads == threads[i]][:3].sum() / 3
        out[i] = gain + weights[5] * bool(marks[i] & 1)
