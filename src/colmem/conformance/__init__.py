"""The conformance suite: what any engine must do, checked through the contract alone.

``run(engine)`` stops at the first failure and always cleans up. A check can also run alone:
``run_check(engine, name)`` for each name of ``CHECKS``. The engine may hold other data.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from colmem.conformance import checks, read_checks, write_checks
from colmem.conformance.harness import ConformanceError, Run
from colmem.contract import MemoryEngine

Check = Callable[[Run], None]

CONTRACT_CHECKS: Final[dict[str, Check]] = {
    "health": checks.check_health,
    "round_trip": checks.check_round_trip,
    "replay": checks.check_replay,
    "explore": checks.check_explore,
    "get": checks.check_get,
    "store_many": checks.check_store_many,
    "fetch_filters": checks.check_fetch_filters,
    "unsupported_modes": checks.check_unsupported_modes,
    "namespaces": checks.check_namespaces,
    "empty_forget": checks.check_empty_forget,
    "forget_by_id": checks.check_forget_by_id,
    "forget_by_filter": checks.check_forget_by_filter,
    "recall": checks.check_recall,
}
"""The contract's own checks, in their order."""

EXTRA_CHECKS: Final[dict[str, Check]] = {
    "descriptor": write_checks.check_descriptor,
    "metadata": write_checks.check_metadata,
    "item_validation": write_checks.check_item_validation,
    "refused_batch": write_checks.check_refused_batch,
    "batch_repeats": write_checks.check_batch_repeats,
    "observed_at": write_checks.check_observed_at,
    "distinct": write_checks.check_distinct,
    "request_validation": read_checks.check_request_validation,
    "mode_gate": read_checks.check_mode_gate,
    "unknown_cursor": read_checks.check_unknown_cursor,
    "list_pages": read_checks.check_list_pages,
    "time_bounds": read_checks.check_time_bounds,
    "paths": read_checks.check_paths,
    "filter_values": read_checks.check_filter_values,
    "reach_edges": read_checks.check_reach_edges,
    "get_repeats": read_checks.check_get_repeats,
    "explore_counts": read_checks.check_explore_counts,
    "explore_scan": read_checks.check_explore_scan,
    "fetch_pages": read_checks.check_fetch_pages,
    "fetch_hits": read_checks.check_fetch_hits,
    "recall_filter": read_checks.check_recall_filter,
    "forget_ids": write_checks.check_forget_ids,
    "forget_then_store": write_checks.check_forget_then_store,
    "forget_filters": write_checks.check_forget_filters,
}
"""Checks of rules the contract's own suite leaves out."""

CHECKS: Final[dict[str, Check]] = {**CONTRACT_CHECKS, **EXTRA_CHECKS}
"""All checks by name, in the order they run."""

CLEANUP: Final = "cleanup"

__all__ = [
    "CHECKS",
    "CLEANUP",
    "CONTRACT_CHECKS",
    "EXTRA_CHECKS",
    "ConformanceError",
    "Run",
    "run",
    "run_check",
]


def run(engine: MemoryEngine) -> None:
    """Put an engine through every check, then remove what they stored.

    Raises
    ------
    ConformanceError
        For the first check that fails; the clean-up runs all the same.
    """
    _run(engine, CHECKS.items())


def run_check(engine: MemoryEngine, name: str) -> None:
    """Put an engine through one check, then remove what it stored.

    Raises
    ------
    ConformanceError
        When the check, or else the clean-up, fails.
    """
    _run(engine, [(name, CHECKS[name])])


def _run(engine: MemoryEngine, chosen: Iterable[tuple[str, Check]]) -> None:
    identity = Run(engine)
    first: ConformanceError | None = None
    for name, check in chosen:
        first = _failure(identity, name, check)
        if first is not None:
            break
    last = _failure(identity, CLEANUP, checks.clean_up)
    error = first or last
    if error is not None:
        raise error


def _failure(identity: Run, name: str, check: Check) -> ConformanceError | None:
    identity.check = name
    try:
        check(identity)
    except ConformanceError as error:
        return error
    except Exception as error:  # noqa: BLE001 - whatever a foreign engine raises is its failure
        failure = ConformanceError(name, source=error)
        failure.__cause__ = error
        return failure
    return None
