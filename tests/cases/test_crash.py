"""CRASH: a kill at any moment leaves a store that opens, whole and level (D4, D5, D6)."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import colmem
from agreement import assert_agreement
from samples import WORD

pytestmark = pytest.mark.crash


def stored_and_forgotten_again(
    killer: Any, store: Path, name: str, n: int, delays: Iterator[float], n_kills: int
) -> None:
    for _ in range(n_kills):
        killer.kill(name, store, after_steps=1, delay_s=next(delays))
        with colmem.open(store) as engine:
            ids = assert_agreement(engine, WORD)
            # The step under way when it was killed may or may not have counted.
            assert len(ids) in {0, n}
            assert len(set(ids)) == len(ids)
            if len(ids) == n:
                assert engine.forget(ids=ids).forgotten == n
            assert engine.check().problems == []


def test_d04_storing_what_was_forgotten_survives_kills(
    killer: Any, store_path: Path, delay: Iterator[float]
) -> None:
    stored_and_forgotten_again(killer, store_path, "again", 1, delay, 6)


def test_d04_a_batch_of_a_hundred_such_pairs_survives_kills(
    killer: Any, store_path: Path, delay: Iterator[float]
) -> None:
    stored_and_forgotten_again(killer, store_path, "many_again", 100, delay, 4)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "n"), [("again", 1), ("many_again", 100)])
def test_d04_two_hundred_kills(
    killer: Any, store_path: Path, delay: Iterator[float], name: str, n: int
) -> None:
    stored_and_forgotten_again(killer, store_path, name, n, delay, 200)


def test_d05_what_was_replayed_is_kept_by_compaction(killer: Any, store_path: Path) -> None:
    killer.kill("unflushed", store_path, after_steps=1)
    with colmem.open(store_path) as engine:
        assert len(assert_agreement(engine, WORD)) == 150
        engine.compact()
        assert len(assert_agreement(engine, WORD)) == 150
    script = (
        "import sys, colmem\n"
        "with colmem.open(sys.argv[1]) as engine:\n"
        "    assert engine.sql('SELECT count(*) AS n FROM items').to_pylist() == [{'n': 150}]\n"
        "    for mode in ('keyword', 'vector', 'hybrid'):\n"
        "        assert len(engine.fetch(query='common', mode=mode, limit=999).hits) == 150\n"
        "    assert engine.check().problems == []\n"
    )
    run = [sys.executable, "-c", script, str(store_path)]
    subprocess.run(run, check=True, timeout=300)


def killed_between_the_commits(
    killer: Any, store: Path, delays: Iterator[float], n_kills: int
) -> None:
    for _ in range(n_kills):
        killer.kill("indexing", store, after_steps=2, delay_s=next(delays))
        with colmem.open(store) as engine:
            n_held = engine.explore(facet="kind").total
            assert n_held % 20 == 0
            page = engine.fetch(query=WORD, mode="keyword", limit=100_000)
            assert len(page.hits) == n_held
            assert engine.check().problems == []
    no_orphans(store)


def no_orphans(store: Path) -> None:
    """Every file of the lexical index belongs to a segment that is in use."""
    (folder,) = (store / "lexical").iterdir()
    with colmem.open(store) as engine:
        engine.compact()
        n_segments = len(assert_agreement(engine, WORD)) and 1
    (folder,) = (store / "lexical").iterdir()
    meta = json.loads((folder / "meta.json").read_bytes())
    used = {segment["segment_id"].replace("-", "") for segment in meta["segments"]}
    assert len(used) >= n_segments
    names = {path.name.split(".")[0] for path in folder.iterdir() if path.suffix}
    assert {name for name in names if len(name) == 32} == used


def test_d06_a_kill_between_table_and_lexical_commit(
    killer: Any, store_path: Path, delay: Iterator[float]
) -> None:
    killed_between_the_commits(killer, store_path, delay, 5)


@pytest.mark.slow
def test_d06_five_hundred_kills_while_indexing(
    killer: Any, store_path: Path, delay: Iterator[float]
) -> None:
    killed_between_the_commits(killer, store_path, delay, 500)
