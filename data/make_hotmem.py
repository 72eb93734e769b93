"""Make ``data/hotmem-snapshot``: XQuAD questions as memories, exported by the real HotMem.

Run as ``python data/make_hotmem.py`` with HotMem installed (``python bench/peer_env.py`` prints an
interpreter that has it). Needs ``data/xquad-en/questions.jsonl.gz``.
"""

from __future__ import annotations

import gzip
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
N_RECORDS = 200


def main() -> None:
    """Hydrate plain records into a HotMem database and export it."""
    with gzip.open(HERE / "xquad-en" / "questions.jsonl.gz", "rt", encoding="utf-8") as file:
        questions = [json.loads(line) for line in file][:N_RECORDS]
    out = HERE / "hotmem-snapshot"
    shutil.rmtree(out, ignore_errors=True)
    with tempfile.TemporaryDirectory() as folder:
        plain, db = Path(folder) / "plain.jsonl", Path(folder) / "hotmem.db"
        with plain.open("w", encoding="utf-8") as file:
            for i, question in enumerate(questions):
                record = {
                    "id": f"xquad-question-{i:04}",
                    "identifier": f"question {question['id']}",
                    "fact_text": question["text"],
                    "source": "xquad",
                    "tags": ["question"],
                    "created_at": "2026-07-01T00:00:00Z",
                }
                file.write(json.dumps(record) + "\n")
        hotmem = [Path(sys.executable).with_name("hotmem")]
        for action, path in (("hydrate", plain), ("snapshot", out)):
            subprocess.run([*hotmem, action, "--file", path, "--db", db], check=True)
    (out / "metadata.json").write_text("{}\n")


if __name__ == "__main__":
    main()
