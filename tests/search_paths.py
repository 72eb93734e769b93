"""Has every store of a test run search by chosen paths, with a chosen number of threads.

``COLMEM_TEST_PATHS=exact-1``, ``exact-4``, ``fast-1`` or ``fast-4``: ``exact`` compares every
embedding; ``fast`` uses codes in a store however small, splits every scan, and searches the newest
items beside the lexical index. ``make test-paths`` runs the tests of correctness in all four.
"""

import os

import colmem
from colmem import lexical_level
from colmem.index import vector, vector_search

VARIABLE = "COLMEM_TEST_PATHS"


def choose(paths: str) -> None:
    """Search by these paths from here on, in this process."""
    kind, _, threads = paths.partition("-")
    assert kind in {"exact", "fast"}, f"{VARIABLE} is {paths!r}"
    colmem.open.__kwdefaults__ |= {"exact": kind == "exact", "threads": int(threads)}
    if kind == "fast":
        vector.CODED_ROWS_MIN = 1
        vector_search._SPLIT_ROWS_MIN = 0
        lexical_level.TAIL_SHARE_MAX = 1.0
        for module in (vector, vector_search):
            module.compares_all = lambda view, k, n_admitted: view.codes is None


if VARIABLE in os.environ:
    choose(os.environ[VARIABLE])
