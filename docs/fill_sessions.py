"""Runs the shell sessions of README.md and of the pages, and writes down what they print.

``--check`` only compares; names of files confine it to those.
"""

from __future__ import annotations

import difflib
import sys
import tempfile
from pathlib import Path
from typing import Any

from page_blocks import TOP, CommandFailedError, Folder, blocks, lines_to_run, printed_by

FILES = [TOP / "README.md", *sorted((TOP / "docs").glob("*.md"))]


def filled(page: str) -> str:
    """The page with every session as it runs now, all its blocks in one folder."""
    if not any(block.language == "console" for block in blocks(page)):
        return page
    made, end = [], 0
    names: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as path, Folder(Path(path)) as folder:
        for block in blocks(page):
            if block.language == "python":
                printed_by(folder.localised(block.text), folder.path, names)
            elif block.title is not None:
                left = folder.path / block.title
                left.parent.mkdir(exist_ok=True)
                left.write_text(block.text, encoding="utf-8")
            elif block.language == "sh":
                for command in lines_to_run(block.text):
                    folder.printed(command)
            elif block.language == "console":
                made += [page[end : block.start], folder.session(block.text)]
                end = block.start + len(block.text)
    return "".join([*made, page[end:]])


def main() -> None:
    """Fill the files, or say how they differ from a run."""
    names = [word for word in sys.argv[1:] if word != "--check"]
    for path in [Path(name) for name in names] or FILES:
        held = path.read_text(encoding="utf-8")
        try:
            made = filled(held)
        except CommandFailedError as error:
            sys.exit(f"{path.name}: {error}")
        if made == held:
            continue
        if "--check" in sys.argv:
            lines = difflib.unified_diff(held.split("\n"), made.split("\n"), path.name, "now")
            sys.exit("\n".join([f"{path.name} differs from a run; run `make docs`", *lines]))
        path.write_text(made, encoding="utf-8")


if __name__ == "__main__":
    main()
