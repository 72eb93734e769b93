"""The site builds strictly without a network, and its pages ask nothing of other servers."""

import os
import re
import subprocess
import sys
from pathlib import Path

from make_pages import gather

CONFIG = Path(__file__).parents[2] / "docs" / "mkdocs.yml"
BUILD = """
import socket, sys

def refuse(*args, **options):
    raise OSError("no network here")

socket.getaddrinfo = socket.create_connection = socket.socket.connect = refuse
from mkdocs.__main__ import cli
cli(["build", "--strict", "--quiet", "--config-file", sys.argv[1], "--site-dir", sys.argv[2]])
"""
LOADED = re.compile(r"<(?:script|img|link|iframe|source)\b[^>]*?(?:src|href)=\"?(?:https?:)?//")


def test_the_site_builds_and_is_whole_by_itself(tmp_path: Path) -> None:
    gather(tmp_path / "pages")
    site = tmp_path / "site"
    ran = subprocess.run(
        [sys.executable, "-c", BUILD, CONFIG, site],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"PAGES": str(tmp_path / "pages")},
    )
    assert ran.returncode == 0, ran.stderr
    pages = {path.name: path.read_text(encoding="utf-8") for path in site.glob("*.html")}
    assert {*pages} == {f"{p.stem}.html" for p in CONFIG.parent.glob("*.md")} | {"404.html"}
    assert [name for name, text in pages.items() if LOADED.search(text)] == []
    assert "Open a store, creating it when absent" in pages["reference.html"]
    assert "Retrieval quality" in pages["figures.html"]
