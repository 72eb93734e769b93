"""Answers cut down to what a model needs: no namespace, no nulls, scores of four places."""

from __future__ import annotations

import math
from typing import Any

from colmem.contract import Citation, ExplorePage, Hit, MemoryMeta

Result = dict[str, Any]

_PLACES_FACTOR = 10_000


def rounded(value: float) -> float:
    """Round to four places, half away from zero."""
    scaled = abs(float(value)) * _PLACES_FACTOR
    whole = math.floor(scaled)
    if scaled - whole >= 0.5:
        whole += 1
    return math.copysign(whole / _PLACES_FACTOR, value)


def meta_result(meta: MemoryMeta) -> Result:
    """Shape metadata."""
    source: Result = {"kind": meta.source.kind.value}
    if meta.source.id is not None:
        source["id"] = meta.source.id
    result: Result = {"source": source}
    for field in ("file_path", "url", "thread_id"):
        value = getattr(meta, field)
        if value is not None:
            result[field] = value
    if meta.tags:
        result["tags"] = list(meta.tags)
    if meta.observed_at is not None:
        result["observed_at"] = meta.observed_at.text(whole_seconds=True)
    return result


def hit_result(hit: Hit) -> Result:
    """Shape a hit."""
    result: Result = {
        "id": hit.id,
        "kind": hit.kind.value,
        "text": hit.text,
        "score": rounded(hit.score),
    }
    if hit.confidence is not None:
        result["confidence"] = rounded(hit.confidence)
    result["meta"] = meta_result(hit.meta)
    return result


def citation_result(citation: Citation) -> Result:
    """Shape a citation."""
    result: Result = {
        "id": citation.id,
        "kind": citation.kind.value,
        "snippet": citation.snippet,
    }
    if citation.score is not None:
        result["score"] = rounded(citation.score)
    result["meta"] = meta_result(citation.meta)
    return result


def page_result(name: str, hits: list[Hit], next_cursor: str | None) -> Result:
    """Shape a page of hits."""
    result: Result = {name: [hit_result(hit) for hit in hits]}
    if next_cursor is not None:
        result["next_cursor"] = next_cursor
    return result


def explore_result(page: ExplorePage) -> Result:
    """Shape the counts along a facet."""
    return {
        "facet": page.facet.value,
        "buckets": [{"value": b.value, "count": b.count} for b in page.buckets],
        "total": page.total,
        "missing": page.missing,
        "more_buckets": page.more_buckets,
        "truncated": page.truncated,
    }
