"""Child processes that are killed: one process imports colmem, and forks a child for each life.

A script calls :func:`serve` with what a child does; a test starts it with :class:`Zygote`. Forking
saves importing colmem and loading its kernels for every child.
"""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path


class Zygote:
    """The process of a script that serves."""

    def __init__(self, script: Path) -> None:
        path = os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")])
        self._process = subprocess.Popen(
            [sys.executable, str(script)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": path},
        )

    def start(self, *words: object) -> int:
        """Fork a child that is given the words; its pid."""
        assert self._process.stdin is not None
        self._process.stdin.write(" ".join(map(str, words)) + "\n")
        self._process.stdin.flush()
        return int(self._answer())

    def wait_dead(self) -> int:
        """Wait until the child has died; its exit code, or minus the signal that killed it."""
        word, code = self._answer().split()
        assert word == "dead"
        return int(code)

    def close(self) -> None:
        """End the process."""
        self._process.communicate()

    def _answer(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()


def serve(live: Callable[..., None]) -> None:
    """Fork a child for each line of the input; it calls ``live`` with the line's words."""
    for line in sys.stdin:
        words = line.split()
        pid = os.fork()
        if pid == 0:
            os.close(0)
            try:
                live(*words)
            finally:
                os._exit(1)
        _say(str(pid))
        _, status = os.waitpid(pid, 0)
        _say(f"dead {os.waitstatus_to_exitcode(status)}")


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()
