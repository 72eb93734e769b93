"""Every block of every page runs, or is compared with what it describes."""

import json
import re
import shutil
import sqlite3
import zipfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from configurations import check_host, check_install, check_registration, check_titled
from page_blocks import TOP, Block, Folder, blocks, claimed_by, lines_to_run, printed_by

import colmem

DOCS = TOP / "docs"
PAGES = sorted(path.name for path in DOCS.glob("*.md"))
EXPORTS = TOP / "tests" / "adapters" / "exports"


class Page:
    """A page whose blocks are run in their order, in one folder."""

    def __init__(self, name: str, folder: Folder, fixture: Callable[[str], Any]) -> None:
        self.name = name
        self.text = (DOCS / name).read_text(encoding="utf-8")
        self._folder = folder
        self._fixture = fixture
        self._names: dict[str, Any] = {}

    def run(self, block: Block) -> None:
        if block.title is not None:
            check_titled(block.title, block.text, self._folder.path)
        elif block.language == "python":
            self._python(block.text)
        elif block.language == "console":
            assert self._folder.session(block.text) == block.text, "`make docs` writes it anew"
        elif block.language == "sh":
            self._shell(block.text)
        else:
            assert block.language == "text", f"no test for a block in {block.language!r}"
            DIAGRAMS[self.name](block.text)

    def _python(self, text: str) -> None:
        claimed = claimed_by(text)
        assert printed_by(self._folder.localised(text), self._folder.path, self._names) == claimed
        tests = re.findall(r"^def (test_\w+)\((.*?)\)", text, re.MULTILINE)
        for name, fixtures in tests:
            self._names[name](*map(self._fixture, fixtures.split(", ")))

    def _shell(self, text: str) -> None:
        for line in re.findall(r"^pip .*?(?=  #|$)", text, re.MULTILINE):
            check_install(line.strip())
        for line in re.findall(r"^claude .*", text, re.MULTILINE):
            check_registration(line)
        for command in lines_to_run(text):
            printed = self._folder.printed(command)
            assert not re.search(r"^stored +0$", printed, re.MULTILINE), command


@pytest.mark.parametrize("name", PAGES)
def test_a_page(name: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    folder = tmp_path / "page"
    folder.mkdir()
    PREPARED.get(name, lambda path: None)(folder)
    with Folder(folder) as started:
        page = Page(name, started, request.getfixturevalue)
        for block in blocks(page.text):
            try:
                page.run(block)
            except Exception as error:
                error.add_note(f"docs/{name}:{block.line_of(page.text)}")
                raise


def test_links_between_pages_lead_somewhere() -> None:
    for name in PAGES:
        for target in re.findall(r"\]\(([\w./-]+?)(?:#[^)]*)?\)", (DOCS / name).read_text()):
            assert (DOCS / target).exists(), f"{name}: {target}"


def test_what_the_readme_tells_a_host() -> None:
    text = (TOP / "README.md").read_text(encoding="utf-8")
    [block] = [block for block in blocks(text) if block.language == "json"]
    check_host(json.loads(block.text))


def _files_to_import(folder: Path) -> None:
    """What the page on adapters imports."""
    for name in ("conversations.json", "mem0.json"):
        shutil.copy(EXPORTS / name, folder)
    with zipfile.ZipFile(folder / "chatgpt-export.zip", "w") as archive:
        archive.write(folder / "conversations.json", "conversations.json")
    with closing(sqlite3.connect(folder / "history.db")) as connection, connection:
        connection.execute("CREATE TABLE history (memory_id, new_memory, event)")
        connection.execute("INSERT INTO history VALUES ('m', 'Likes tea', 'ADD')")
    with colmem.open(folder / "other.colmem") as engine:
        engine.store(colmem.document("Owls hunt.", meta=colmem.MemoryMeta(folder="/notes/birds")))


def _check_layout(text: str) -> None:
    """A store's layout: each line names a path that a store has."""
    paths = [line.split()[0] for line in text.splitlines()[text.startswith("<store>") :]]
    with TemporaryDirectory() as folder:
        store = Path(folder) / "store"
        with colmem.open(store) as engine:
            engine.store(colmem.document("Owls hunt."))
            engine.store(colmem.document("Long items have passages of some words each. " * 60))
            engine.fetch(query="owls")
        for path in paths:
            assert (store / path.replace("<g>", "0").rstrip("/…")).exists(), path


def _check_parts(text: str) -> None:
    """A diagram of parts: each word names a module, a package or a folder."""
    words = {*re.findall(r"[a-z]+", text)} - {"everything", "values", "in", "out"}
    source = TOP / "src" / "colmem"
    for word in words:
        assert any((source / end).exists() for end in (word, f"{word}.py")) or (TOP / word).exists()


def _check_diagram(text: str) -> None:
    (_check_layout if text.startswith("<store>") else _check_parts)(text)


DIAGRAMS: dict[str, Callable[[str], None]] = {
    "architecture.md": _check_diagram,
    "files.md": _check_layout,
    # All of it is compared with --help in tests/meta/test_commands.py.
    "cli.md": lambda text: None,
}
PREPARED: dict[str, Callable[[Path], None]] = {"adapters.md": _files_to_import}
