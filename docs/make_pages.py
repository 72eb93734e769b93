"""Gathers the pages of the site in ``.run/pages``, where ``mkdocs.yml`` looks for them.

They are docs/ without its programs, and ``figures.md`` with every bench/results/*.md below it.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path

DOCS = Path(__file__).parent
RESULTS = DOCS.parent / "bench" / "results"
PAGES = DOCS.parent / ".run" / "pages"
_HEADING = re.compile(r"^(#+ )", re.MULTILINE)
_IMAGE = re.compile(r"!\[[^\]]*\]\((?!http)([^)]+)\)")


def gather(target: Path = PAGES) -> None:
    """Make the folder of pages anew."""
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(DOCS, target, ignore=shutil.ignore_patterns("*.py", "*.yml", "__pycache__"))
    figures = target / "figures.md"
    held = [figures.read_text(encoding="utf-8")]
    for result in sorted(RESULTS.glob("*.md"), key=lambda path: (path.stem != "README", path.stem)):
        text = result.read_text(encoding="utf-8")
        for image in _IMAGE.findall(text):
            shutil.copy(RESULTS / image, target / image)
        held.append(_HEADING.sub(r"#\1", text))
    figures.write_text("\n".join(held), encoding="utf-8")


if __name__ == "__main__":
    gather()
