"""Equal stores give the same bytes, however they came about."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from pathlib import Path

import colmem
from colmem import Conversation, Learning, Turn

N_ITEMS = 3_000
PROGRAM = """
import sys, colmem
source, store, out, base, threads = sys.argv[1:]
with colmem.open(store, embedder="hotmem-hash-v1", threads=int(threads)) as engine:
    engine.hydrate(source)
    engine.snapshot(out, attach=True, base_dir=base)
"""


def tree(folder: Path) -> dict[str, bytes]:
    """The files of a snapshot by name; of the manifest what is not the moment of writing."""
    files = {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}
    manifest = json.loads(files.pop("manifest.json"))
    files["manifest.json"] = json.dumps(
        {key: value for key, value in manifest.items() if not key.endswith("_at")}
    ).encode()
    del files["metadata.json"]
    return files


def made(folder: Path) -> Path:
    """Lines of items of every shape, foreign records and references to files, in some order."""
    (folder / "data").mkdir()
    (folder / "data" / "a.txt").write_bytes(b"0123456789" * 100)
    with colmem.open(folder / "first", embedder="hotmem-hash-v1") as engine:
        engine.ingest(colmem.document(f"a note {i} on rivers", title=f"n {i}") for i in range(900))
        engine.store(Conversation(turns=[Turn(role="user", text="hello"), Turn("assistant", "hi")]))
        engine.store(Learning(text="the sky is wide", learning_kind="fact", confidence=0.3))
        engine.snapshot(folder / "items")
    lines = (folder / "items" / "memories.jsonl").read_text().splitlines()
    for i in range(N_ITEMS):
        record = {"id": f"r{i:05}", "identifier": f"doc/{i}", "fact_text": f"fact {i} é 漢"}
        lines.append(json.dumps(record | {"created_at": "2026-01-01T00:00:00Z"}))
    for i in range(40):
        record = {"id": f"f{i}", "identifier": f"file/{i}", "memory_type": "file"}
        place = {"source_uri": "data/a.txt", "byte_offset": i, "byte_length": 7}
        lines.append(json.dumps(record | place | {"created_at": "2026-01-01T00:00:00Z"}))
    source = folder / "lines.jsonl"
    source.write_text("\n".join(lines) + "\n")
    return source


def test_order_run_and_threads_leave_no_trace(tmp_path: Path) -> None:
    source = made(tmp_path)
    lines = source.read_text().splitlines()
    found = []
    for run, (threads, seed) in enumerate([(1, "0"), (4, "1"), (2, "77")]):
        random.Random(run).shuffle(lines)
        mixed = tmp_path / f"lines-{run}.jsonl"
        mixed.write_text("\n".join(lines) + "\n")
        out = tmp_path / f"out-{run}"
        arguments = [mixed, tmp_path / f"store-{run}", out, tmp_path, threads]
        subprocess.run(
            [sys.executable, "-c", PROGRAM, *map(str, arguments)],
            env=os.environ | {"PYTHONHASHSEED": seed},
            check=True,
        )
        found.append(tree(out))
    # Forty references to ten different contents.
    assert len([name for name in found[0] if name.startswith("attachments/")]) == 10
    assert found[0]["memories.jsonl"].count(b"\n") == len(lines)
    assert found[1] == found[0]
    assert found[2] == found[0]
