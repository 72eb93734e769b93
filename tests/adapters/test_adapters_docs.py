"""Every block of docs/adapters.md runs, and prints what stands there."""

import json
import re
import shlex
import shutil
import sqlite3
import zipfile
from contextlib import closing
from pathlib import Path

import pytest
from cli_runs import ITEMS, Run

import colmem

TEXT = (Path(__file__).parents[2] / "docs" / "adapters.md").read_text(encoding="utf-8")
PYTHON = re.findall(r"^```python\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
CONSOLE = re.findall(r"^```console\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
EXPORTS = Path(__file__).parent / "exports"


@pytest.mark.parametrize("number", range(len(PYTHON)))
def test_a_python_block(
    number: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    request: pytest.FixtureRequest,
) -> None:
    block = PYTHON[number]
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    exec(compile(block, f"adapters.md block {number}", "exec"), names)
    expected = [line.strip()[5:] for line in block.splitlines() if line.strip().startswith("# ->")]
    assert capsys.readouterr().out.splitlines() == expected
    tests = re.findall(r"^def (test_\w+)\((.*?)\)", block, re.MULTILINE)
    for name, fixtures in tests:
        names[name](*map(request.getfixturevalue, fixtures.split(", ")))  # type: ignore[operator]
    assert expected or tests


def test_the_imports(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("conversations.json", "mem0.json"):
        shutil.copy(EXPORTS / name, tmp_path)
    with zipfile.ZipFile("chatgpt-export.zip", "w") as archive:
        archive.write("conversations.json")
    with closing(sqlite3.connect("history.db")) as connection, connection:
        connection.execute("CREATE TABLE history (memory_id, new_memory, event)")
        connection.execute("INSERT INTO history VALUES ('m', 'Likes tea', 'ADD')")
    with colmem.open("other.colmem") as engine:
        engine.store_many(ITEMS)
    [block] = CONSOLE
    commands = [shlex.split(line.removeprefix("$ colmem ")) for line in block.splitlines()]
    stored = []
    for command in commands:
        ran = run(*command, "--json")
        assert ran.code == 0, ran.err
        stored.append(json.loads(ran.out)["stored"])
    assert stored == [3, 3, 4, 2]
