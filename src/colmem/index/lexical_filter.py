"""Filters as part of a tantivy query: an exact term for every value a filter may name.

An item gets a few terms in the field ``meta``; a filter becomes a conjunction of such terms (and
two ranges for time), so that the ranked search never visits an item the filter does not admit. The
value of a term is a digest of 96 bits, so a value may be empty, hold spaces or be of any length; a
short plain one stands for itself.
"""

from __future__ import annotations

from base64 import urlsafe_b64encode
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from hashlib import blake2b
from itertools import pairwise
from typing import Final

import numpy as np
import pyarrow as pa
from tantivy import FieldType, Occur, Query, Schema

from colmem.arrow_columns import codes_of, numbers_of, strings_of
from colmem.contract.filters import MetaFilter, path_prefix
from colmem.contract.namespaces import Namespace, Reach
from colmem.contract.timestamps import Timestamp

META_FIELD: Final = "meta"
SECONDS_FIELD: Final = "observed_s"
NANOS_FIELD: Final = "observed_ns"
EXPIRES_FIELD: Final = "expires_s"

_DIGEST_BYTES: Final = 12
_PLAIN_CHARS: Final = 24
"""A value up to so long stands as it is: made faster, and names that begin alike share space."""
_SLASH: Final = ord("/")
_TERM_SET_MIN: Final = 64
_CACHED_VALUES: Final = 1 << 14
"""Terms remembered per kind of value: one commit of the many items that share their metadata."""

_EXACT_COLUMNS: Final = {
    "kind": "k",
    "source_kind": "s",
    "source_id": "i",
    "workspace": "w",
    "language": "l",
    "repo": "r",
    "commit": "c",
    "url": "u",
    "thread_id": "h",
    "agent_id": "a",
    "tool_name": "t",
}
_PATH_COLUMNS: Final = {"folder": "f", "file_path": "p"}
_NODE, _BELOW, _TAG, _TURNS = "N", "n", "g", "T"


def _term(prefix: str, value: str) -> str:
    is_short = 0 < len(value) <= _PLAIN_CHARS
    if is_short and value.isascii() and value.isprintable() and " " not in value:
        return f"{prefix}={value}"  # no digest holds this sign
    return _digest_term(prefix, value)


@lru_cache(maxsize=_CACHED_VALUES)
def _digest_term(prefix: str, value: str) -> str:
    return _digested(prefix, blake2b(value.encode(), digest_size=_DIGEST_BYTES))


def _digested(prefix: str, digest: blake2b) -> str:
    return prefix + urlsafe_b64encode(digest.digest()).decode()


EVERY_ITEM_TERM: Final = _term(_BELOW, "")
"""Every item lies below the root, so this term counts all, the deleted included."""


def _exact_terms(prefix: str, value: str) -> str:
    return _term(prefix, value) + " "


@lru_cache(maxsize=_CACHED_VALUES)
def _path_terms(prefix: str, held: str) -> str:
    # One term per path that is this one or lies above it. A wanted path is compared without its
    # trailing slashes, so a prefix that ends with one is never asked for.
    if held.count("/") > _PARENTS_MAX:
        return _deep_path_terms(prefix, held)
    above, slash, _ = held.rpartition("/")
    terms = _path_terms(prefix, above) if slash else ""
    return terms if held.endswith("/") else f"{terms}{_term(prefix, held)} "


_PARENTS_MAX: Final = 100


def _deep_path_terms(prefix: str, held: str) -> str:
    data = held.encode()
    digest = blake2b(digest_size=_DIGEST_BYTES)
    terms = []
    start = 0
    for end in [*(at for at, byte in enumerate(data) if byte == _SLASH), len(data)]:
        digest.update(data[start:end])
        start = end
        if not data.endswith(b"/", 0, end):
            is_short = end <= _PLAIN_CHARS
            term = _term(prefix, data[:end].decode()) if is_short else _digested(prefix, digest)
            terms.append(f"{term} ")
    return "".join(terms)


@lru_cache(maxsize=_CACHED_VALUES)
def _namespace_terms(path: str) -> str:
    # "" is the root; a node's own term, and one per node whose subtree it belongs to.
    parts = path.split("/") if path else []
    nodes = ["/".join(parts[:depth]) for depth in range(len(parts) + 1)]
    return _term(_NODE, path) + " " + "".join(_term(_BELOW, node) + " " for node in nodes)


def meta_terms(batch: pa.RecordBatch) -> list[str]:
    """The terms of every row of a batch of items, separated by spaces."""
    columns: list[str | list[str]] = [
        _coded(batch.column("namespace"), _namespace_terms),
        _turns_terms(batch),
        _tag_terms(batch.column("tags")),
    ]
    columns += [
        _coded(batch.column(name), partial(_exact_terms, prefix))
        for name, prefix in _EXACT_COLUMNS.items()
    ]
    columns += [
        _coded(batch.column(name), partial(_path_terms, prefix))
        for name, prefix in _PATH_COLUMNS.items()
    ]
    common = "".join(terms for terms in columns if isinstance(terms, str))
    own = [terms for terms in columns if not isinstance(terms, str)]
    if not own:
        return [common] * batch.num_rows
    return [common + "".join(parts) for parts in zip(*own, strict=True)]


def _coded(column: pa.Array, terms_of: Callable[[str], str]) -> str | list[str]:
    """Terms of one column, made once per distinct value; one text when all rows have the same."""
    if column.null_count == len(column):
        return ""
    coded = column.dictionary_encode()
    terms = [terms_of(value) for value in strings_of(coded.dictionary)]
    if len(terms) == 1 and column.null_count == 0:
        return terms[0]
    terms.append("")  # what code -1, a missing value, picks
    return [terms[code] for code in codes_of(coded).tolist()]


def _turns_terms(batch: pa.RecordBatch) -> str | list[str]:
    first, last = batch.column("turn_first"), batch.column("turn_last")
    if first.null_count == len(first):
        return ""
    pairs = zip(first.to_pylist(), last.to_pylist(), strict=True)
    return ["" if low is None else f"{_TURNS}{low}-{high} " for low, high in pairs]


def _tag_terms(column: pa.Array) -> str | list[str]:
    flat = column.flatten()
    if len(flat) == 0:
        return ""
    coded = flat.dictionary_encode()
    terms = [_exact_terms(_TAG, tag) for tag in strings_of(coded.dictionary)]
    codes = codes_of(coded)
    text = "".join([terms[code] for code in codes.tolist()])
    ends = np.append(0, np.cumsum(np.array(list(map(len, terms)))[codes]))
    lengths = numbers_of(column.value_lengths())
    bounds = ends[np.append(0, np.cumsum(lengths))].tolist()
    return [text[start:end] for start, end in pairwise(bounds)]


def filter_queries(schema: Schema, filter: MetaFilter) -> list[Query]:
    """The conditions of a filter, all of which must hold; none for an empty filter."""
    queries = [_any_of(schema, terms) for terms in _wanted_terms(filter)]
    queries += [
        _time_bound(schema, seconds, nanos, is_after=is_after)
        for seconds, nanos, is_after in _wanted_times(filter)
    ]
    return queries


def expired_query(schema: Schema, now_s: int) -> Query:
    """Make the query for the items that have expired by a second."""
    return Query.range_query(schema, EXPIRES_FIELD, FieldType.Integer, None, now_s)


def _wanted_terms(filter: MetaFilter) -> list[list[str]]:
    """One list of alternative terms per set field."""
    exact = {
        "k": filter.kinds or None,
        "s": filter.sources or None,
        "i": filter.source_id,
        "w": filter.workspace,
        "l": filter.language,
        "r": filter.repo,
        "c": filter.commit,
        "u": filter.url,
        "h": filter.thread_id,
        "a": filter.agent_id,
        "t": filter.tool_call,
        _TAG: filter.tags_any or None,
    }
    wanted: list[list[str]] = []
    for prefix, value in exact.items():
        if value is not None:
            values = [value] if isinstance(value, str) else value
            wanted.append([_term(prefix, str(each)) for each in dict.fromkeys(values)])
    for prefix, path in (("f", filter.folder), ("p", filter.file_path)):
        if path is not None:
            wanted.append([_term(prefix, path_prefix(path))])
    if filter.turns is not None:
        wanted.append([f"{_TURNS}{filter.turns.first}-{filter.turns.last}"])
    if filter.reach is not None and not _admits_all(filter.reach):
        wanted.append(_reach_terms(filter.reach))
    return wanted


def _admits_all(reach: Reach) -> bool:
    return reach.descendants and reach.at.is_root


def _reach_terms(reach: Reach) -> list[str]:
    terms = [_term(_NODE, _path(node)) for node in reach.nodes()]
    if reach.descendants:
        terms.append(_term(_BELOW, _path(reach.at)))
    return terms


def _path(node: Namespace) -> str:
    return "" if node.is_root else str(node)


def _wanted_times(filter: MetaFilter) -> list[tuple[int, int, bool]]:
    bounds: list[tuple[Timestamp | None, bool]] = [
        (filter.observed_after, True),
        (filter.observed_before, False),
    ]
    return [(at.seconds, at.nanos, is_after) for at, is_after in bounds if at is not None]


def _any_of(schema: Schema, terms: Sequence[str]) -> Query:
    # A constant score of nothing: the filter must not change the score of a text.
    if len(terms) == 1:
        query = Query.term_query(schema, META_FIELD, terms[0], "basic")
    elif len(terms) >= _TERM_SET_MIN:
        query = Query.term_set_query(schema, META_FIELD, terms)
    else:
        query = Query.boolean_query(
            [(Occur.Should, Query.term_query(schema, META_FIELD, t, "basic")) for t in terms]
        )
    return Query.const_score_query(query, 0.0)


def _time_bound(schema: Schema, seconds: int, nanos: int, *, is_after: bool) -> Query:
    """``at >= (seconds, nanos)``, or ``at <`` it; an item without a time has no value to match.

    An item of a whole second has no nanoseconds either.
    """

    def over(field: str, low: int | None, high: int | None) -> Query:
        return Query.range_query(schema, field, FieldType.Integer, low, high)

    if nanos == 0:
        bounds = (seconds, None) if is_after else (None, seconds - 1)
        return Query.const_score_query(over(SECONDS_FIELD, *bounds), 0.0)
    # In the second of the bound, those at or after it.
    late = Query.boolean_query(
        [
            (Occur.Must, over(SECONDS_FIELD, seconds, seconds)),
            (Occur.Must, over(NANOS_FIELD, nanos, None)),
        ]
    )
    if is_after:
        parts = [(Occur.Should, over(SECONDS_FIELD, seconds + 1, None)), (Occur.Should, late)]
    else:
        parts = [(Occur.Must, over(SECONDS_FIELD, None, seconds)), (Occur.MustNot, late)]
    return Query.const_score_query(Query.boolean_query(parts), 0.0)
