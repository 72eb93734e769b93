"""The suite itself: right engines pass, each wrong one fails in the check meant for it."""

import pytest
from broken_engines import ERRORS, FAULTS

from colmem import conformance
from colmem.conformance import CHECKS, CONTRACT_CHECKS, ConformanceError
from colmem.contract import FetchMode, MemoryMeta, document, encode, learning
from colmem.reference import ReferenceEngine


def test_the_reference_engine_passes_and_is_empty_afterwards() -> None:
    engine = ReferenceEngine()
    conformance.run(engine)
    assert engine.list().items == []


def test_foreign_items_survive_a_run() -> None:
    engine = ReferenceEngine()
    items = [
        document("note in the way", meta=MemoryMeta(folder="/a/b", tags=["namespaces", "x"])),
        document("elsewhere", meta=MemoryMeta(workspace="tinymemory-conformance")),
        learning("below", meta=MemoryMeta(namespace="agent:a", observed_at="2001-06-01T00:00:00Z")),
    ]
    for item in items:
        engine.store(item)
    before = encode(engine.list())
    conformance.run(engine)
    assert encode(engine.list()) == before


@pytest.mark.parametrize("name", CHECKS)
def test_each_check_runs_alone(name: str) -> None:
    engine = ReferenceEngine()
    conformance.run_check(engine, name)
    assert engine.list().items == []


@pytest.mark.parametrize("modes", [[], ["keyword"], ["vector", "hybrid"]])
def test_engines_with_fewer_modes_pass(modes: list[FetchMode]) -> None:
    from msgspec.structs import replace

    class Fewer(ReferenceEngine):
        def descriptor(self):
            return replace(super().descriptor(), fetch_modes=modes)

    conformance.run(Fewer())


@pytest.mark.parametrize("name", FAULTS)
def test_a_broken_engine_is_caught_by_the_check_meant_for_it(name: str) -> None:
    cls, check = FAULTS[name]
    with pytest.raises(ConformanceError) as caught:
        conformance.run(cls())
    error = caught.value
    assert error.check == check, str(error)
    if name in ERRORS:
        assert error.source is not None
        expected = f"the engine returned an error: {error.source}"
    else:
        assert error.source is None, str(error)
        expected = error.detail
    assert str(error) == f"conformance check `{check}` failed: {expected}"


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_caught_by_its_check_alone(name: str) -> None:
    cls, check = FAULTS[name]
    if check == conformance.CLEANUP:
        check = "fetch_filters"
    with pytest.raises(ConformanceError):
        conformance.run_check(cls(), check)


def test_every_check_catches_some_fault() -> None:
    caught_by = {check for _, check in FAULTS.values()}
    assert sorted({*CHECKS, conformance.CLEANUP} - caught_by) == []
    assert len(FAULTS) >= 40


def test_the_contract_s_check_names() -> None:
    assert list(CONTRACT_CHECKS) == [
        "health",
        "round_trip",
        "replay",
        "explore",
        "get",
        "store_many",
        "fetch_filters",
        "unsupported_modes",
        "namespaces",
        "empty_forget",
        "forget_by_id",
        "forget_by_filter",
        "recall",
    ]


def test_the_clean_up_runs_after_a_failure() -> None:
    cls, _ = FAULTS["recall answers nothing"]
    engine = cls()
    with pytest.raises(ConformanceError):
        conformance.run(engine)
    assert engine.list().items == []
