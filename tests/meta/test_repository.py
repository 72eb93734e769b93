"""What holds of the files of the repository as a whole."""

import re
import subprocess
from pathlib import Path

import pytest

TOP = Path(__file__).parents[2]
MACHINE_PATH = re.compile(r"(?:^|[^A-Za-z0-9_.])/(?:work|farm|root|home/[a-z]+)/[A-Za-z.]")
BYTES_MAX = 2**20  # generated data does not belong here, the embedding table excepted
BINARY = {".npz", ".npy", ".gz", ".png", ".parquet"}


@pytest.fixture(scope="module")
def files() -> list[Path]:
    """The files under version control."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=TOP, capture_output=True, check=False)
    if listed.returncode:
        pytest.fail(f"git ls-files failed: {listed.stderr.decode()}")
    paths = [TOP / name for name in listed.stdout.decode().split("\0") if name]
    return [path for path in paths if path.is_file() and "golden" not in path.parts]


def test_no_path_of_one_machine(files: list[Path]) -> None:
    found = []
    for path in files:
        if path.suffix in BINARY:
            continue
        for number, line in enumerate(path.read_text(encoding="utf-8").split("\n"), 1):
            if MACHINE_PATH.search(line):
                found.append(f"{path.relative_to(TOP)}:{number}")
    assert found == []


def test_no_large_file(files: list[Path]) -> None:
    large = [path for path in files if path.stat().st_size > BYTES_MAX]
    assert [path for path in large if "embed" not in path.parts] == []


def test_the_bundled_data_is_what_its_readme_says() -> None:
    from hashlib import sha256

    rows = re.findall(r"\| `(\S+)` \|[^|]*\|[^|]*\| `([0-9a-f]{64})` \|", _text("data/README.md"))
    assert len(rows) == 4
    for name, digest in rows:
        assert sha256((TOP / "data" / name).read_bytes()).hexdigest() == digest, name


def test_licence_and_notices_are_there() -> None:
    assert "Apache License" in _text("LICENSE")
    for name in ("all-MiniLM-L6-v2", "WordNet", "XQuAD", "CC BY-SA 4.0"):
        assert name in _text("NOTICE")


def test_the_changelog_names_every_command() -> None:
    from colmem.adapters.cli import cli

    changelog = _text("CHANGELOG.md")
    assert [name for name in cli.commands if f"`{name}`" not in changelog] == []


def _text(name: str) -> str:
    return (TOP / name).read_text(encoding="utf-8")
