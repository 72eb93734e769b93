"""What is said where no browser can be installed."""

from pathlib import Path

import pytest

from explorer import chromium


def test_without_a_browser_or_apt_it_says_how_to_get_one(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CHROMIUM", raising=False)
    monkeypatch.setattr(chromium, "MAC", str(tmp_path / "none"))
    assert chromium.find() is None
    why = chromium.install()
    assert why == "there is no apt-get"
    assert "sudo apt-get install chromium" in chromium.HOW.format(why=why)


def test_a_named_browser_is_taken_or_missed_by_name(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    named = tmp_path / "browser"
    named.write_text("#!/bin/sh\n")
    named.chmod(0o755)
    monkeypatch.setenv("CHROMIUM", str(named))
    assert chromium.find() == str(named)
    named.unlink()
    assert chromium.find() is None
    assert "is no program" in str(chromium.install())
