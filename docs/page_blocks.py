"""The fenced blocks of a page, and a folder in which they run one after the other.

Shell commands find the project's ``colmem``; a server goes on in the background until the next
command of colmem, or the end. What differs from run to run is written as ``...``.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import select
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple, Self

import forks

TOP = Path(__file__).parents[1]
STAND_INS = TOP / "tests" / "docs" / "stand_ins"
COLUMNS = "100"
PORT = "8711"
FOREIGN = ("pip ", "claude ", "make ")
SERVER_SECONDS_MAX = 60
_FENCE = re.compile(r"^```([^\n`]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_TITLE = re.compile(r'title="([^"]*)"')
_COMMAND = re.compile(r"^\$ ((?:.*\\\n)*.*)$", re.MULTILINE)
_SERVER = re.compile(r"colmem serve |colmem mcp .*--http")
_VARYING = re.compile(
    r"(?P<before>(?:seconds|items per second|snapshot id) +|--cursor )\S+"
    r'|(?P<key>"(?:snapshot_id|observed_at)": ")[^"]+'
)


class Block(NamedTuple):
    """A fenced block: its language, title and text, and where the text stands in the page."""

    language: str
    title: str | None
    text: str
    start: int

    def line_of(self, page: str) -> int:
        """The line of the page at which the text begins."""
        return page.count("\n", 0, self.start) + 1


def blocks(page: str) -> list[Block]:
    """Every fenced block of a page, in order."""
    found = []
    for match in _FENCE.finditer(page):
        language, _, rest = match[1].partition(" ")
        title = _TITLE.search(rest)
        found.append(Block(language, title[1] if title else None, match[2], match.start(2)))
    return found


def commands(text: str) -> list[str]:
    """The commands of a session: what stands after a dollar sign, with continued lines."""
    return _COMMAND.findall(text)


def lines_to_run(text: str) -> list[str]:
    """The commands of a block in sh, without those that are for programs other than colmem."""
    lines = (line.partition("  #")[0].strip() for line in text.replace("\\\n", " ").splitlines())
    return [line for line in lines if not line.startswith(FOREIGN)]


def printed_by(text: str, folder: Path, names: dict[str, Any]) -> list[str]:
    """The lines that a Python block prints; what it defines is added to the names."""
    printed = io.StringIO()
    with contextlib.chdir(folder), contextlib.redirect_stdout(printed):
        exec(compile(text, "a block", "exec"), names)
    return printed.getvalue().splitlines()


def claimed_by(text: str) -> list[str]:
    """The lines that a Python block says it prints, in comments that begin with an arrow."""
    lines = (line.strip() for line in text.splitlines())
    return [line.removeprefix("# -> ") for line in lines if line.startswith("# -> ")]


class CommandFailedError(Exception):
    """A command of a page ended with an exit code other than 0."""


class Folder:
    """An empty folder that sees the bundled data; commands run in it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        (path / "data").symlink_to(TOP / "data")
        self._server: subprocess.Popen[bytes] | None = None
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self._port = str(probe.getsockname()[1])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._stop_server()

    def localised(self, text: str) -> str:
        """A text with the port that servers of this folder listen on."""
        return re.sub(rf"\b{PORT}\b", self._port, text)

    def session(self, text: str) -> str:
        """A session as it runs now: each command, and what it prints."""
        return "".join(f"$ {command}\n{self.printed(command)}" for command in commands(text))

    def printed(self, command: str) -> str:
        """What a command prints; a server, until it listens.

        Raises
        ------
        CommandFailedError
            When its exit code is not 0.
        """
        if "colmem " in command:
            self._stop_server()
        if _SERVER.match(command):
            return self._start_server(command)
        ran = subprocess.run(
            ["sh", "-c", self.localised(command)],
            cwd=self.path,
            env=self._environment(forks.folder()),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        if ran.returncode:
            raise CommandFailedError(f"$ {command}\n{ran.stdout}")
        return self._written(ran.stdout)

    def _start_server(self, command: str) -> str:
        forks.folder()  # once it is there kernels are compiled, and the server does not speak of it
        self._server = subprocess.Popen(
            ["sh", "-c", f"exec {self.localised(command)} --port {self._port}"],
            cwd=self.path,
            env=self._environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        assert self._server.stdout is not None
        output = b""
        end = time.monotonic() + SERVER_SECONDS_MAX
        while b"Ctrl-C\n" not in output:
            ready, _, _ = select.select([self._server.stdout], [], [], end - time.monotonic())
            part = os.read(self._server.stdout.fileno(), 4096) if ready else b""
            if not part:
                raise CommandFailedError(f"$ {command}\nno server after:\n{output.decode()}")
            output += part
        return self._written(output.decode())

    def _stop_server(self) -> None:
        if self._server is None:
            return
        self._server.send_signal(signal.SIGTERM)
        self._server.communicate(timeout=SERVER_SECONDS_MAX)
        self._server = None

    def _written(self, output: str) -> str:
        text = output.replace(f":{self._port}", f":{PORT}")
        text = _VARYING.sub(lambda found: f"{found['before'] or found['key']}...", text)
        return text if text.endswith("\n") or not text else f"{text}\n"

    @staticmethod
    def _environment(*first: Path) -> dict[str, str]:
        folders = [*map(str, first), str(Path(sys.executable).parent), os.environ["PATH"]]
        if shutil.which("curl") is None:
            folders.append(str(STAND_INS))
        return {**os.environ, "PATH": os.pathsep.join(folders), "COLUMNS": COLUMNS}
