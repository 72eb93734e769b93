"""Every bound of the contract, each with its unit and its reason."""

from __future__ import annotations

from typing import Final

ITEMS_PER_STORE_MANY_MAX: Final = 100
"""Items in one ``store_many``: keeps a batch one short transaction in any engine."""

IDS_PER_GET_MAX: Final = 200
"""Ids in one ``get``."""

BUCKETS_MAX: Final = 500
"""Buckets in one ``explore`` answer."""

SCAN_LIMIT_MAX: Final = 50_000
"""Items a listing-based ``explore`` may read."""

SCAN_LIMIT_DEFAULT: Final = 5_000
"""Items a listing-based ``explore`` reads when the request does not say."""

PAGE_ITEMS: Final = 200
"""Items the listing-based defaults of ``explore`` and ``get`` read at a time."""

NAMESPACE_DEPTH_MAX: Final = 8
"""Segments of a namespace."""

SEGMENT_ID_CHARS_MAX: Final = 128
"""Characters of a namespace segment's id."""

SEGMENT_ID_KEPT_CHARS: Final = 119
"""Characters kept of a raw id that is sanitised: 128 less a dash and 8 hex digits of its hash."""

U32_MAX: Final = 2**32 - 1
"""Largest turn number."""

U64_MAX: Final = 2**64 - 1
"""Largest limit on the wire."""

FINGERPRINT_HEX_DIGITS: Final = 40
"""Digits of a fingerprint: the first 20 bytes of the content digest."""

FETCH_LIMIT_DEFAULT: Final = 10
"""Hits of a fetch, citations of a recall, when Python code does not say."""

LIST_LIMIT_DEFAULT: Final = 100
"""Items of a list page when Python code does not say."""

EXPLORE_LIMIT_DEFAULT: Final = 50
"""Buckets of an explore when Python code does not say."""
