from __future__ import annotations

import json
from pathlib import Path

import colmem

TEXTS = [f"The red boat sails to the old harbour at dawn{end}" for end in (".", "!", "?", " .")]


def test_near_identical_hits_follow_the_others_when_asked(tmp_path: Path) -> None:
    path = tmp_path / "s.colmem"
    with colmem.open(path) as engine:
        engine.store_many([colmem.document(text) for text in TEXTS])
        other = engine.store(colmem.document("A harbour pilot guides each boat."))
        plain = [hit.id for hit in engine.fetch(query="red boat old harbour dawn").hits]
    assert plain.index(other.id) == len(plain) - 1
    settings = json.loads((path / "store.json").read_text())
    settings["ranking"]["near_duplicates"] = 0.98
    (path / "store.json").write_text(json.dumps(settings))
    with colmem.open(path) as engine:
        found = [hit.id for hit in engine.fetch(query="red boat old harbour dawn").hits]
    assert sorted(found) == sorted(plain)
    assert found.index(other.id) == 1
