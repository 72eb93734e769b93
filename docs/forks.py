"""A ``colmem`` for sessions of many commands: a fork of one process that has loaded all, for each.

``folder()`` holds a program of that name. It hands its words, environment and streams to the
process, whose fork runs the command and answers with its exit code. Loading colmem takes longer
than most commands do.
"""

from __future__ import annotations

import atexit
import importlib
import json
import os
import pkgutil
import signal
import socket
import subprocess
import sys
import tempfile
import traceback
from functools import cache
from pathlib import Path

_LOADED = (
    "colmem.adapters.cli",
    "colmem.adapters.importing.run",
    "colmem.adapters.output",
    "colmem.context",
    "colmem.engine",
    "colmem.tools",
)
_CLIENT = """\
#!{python} -IS
import json, os, socket, sys
link = socket.socket(socket.AF_UNIX)
link.connect({address!r})
asked = json.dumps([sys.argv, os.getcwd(), dict(os.environ)]).encode()
socket.send_fds(link, [len(asked).to_bytes(4, "big")], [0, 1, 2])
link.sendall(asked)
sys.exit(int(link.recv(16) or b"1"))
"""


@cache
def folder() -> Path:
    """The folder with the program; made, and its process started, when first asked for."""
    made = tempfile.TemporaryDirectory()
    address = str(Path(made.name) / "socket")
    program = Path(made.name) / "colmem"
    program.write_text(_CLIENT.format(python=sys.executable, address=address), encoding="utf-8")
    program.chmod(0o755)
    started = subprocess.Popen([sys.executable, __file__, address], stdout=subprocess.PIPE)
    assert started.stdout is not None
    with started.stdout:
        assert started.stdout.readline(), "no process to fork from; its error stands above"

    def end() -> None:
        started.terminate()
        started.wait()
        made.cleanup()

    atexit.register(end)
    return program.parent


def _serve(address: str) -> None:
    _load()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(address)
        listener.listen()
        os.write(1, b"ready\n")
        while True:
            link, _ = listener.accept()
            with link:
                if os.fork() == 0:
                    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                    _answer(link)


def _load() -> None:
    """Import what commands import; kernels are ready with that."""
    kernels = importlib.import_module("colmem_kernels")
    modules = [f"colmem_kernels.{found.name}" for found in pkgutil.iter_modules(kernels.__path__)]
    for name in [*_LOADED, *modules]:
        importlib.import_module(name)
    importlib.import_module("colmem").embedder("static-s256").embed(["warm"])


def _answer(link: socket.socket) -> None:
    """Run the command that the other end asks for, on its streams; never returns."""
    length, streams, _, _ = socket.recv_fds(link, 4, 3)
    wanted, asked = int.from_bytes(length, "big"), b""
    while len(asked) < wanted:
        asked += link.recv(wanted - len(asked))
    sys.argv, working_folder, environment = json.loads(asked)
    for target, stream in enumerate(streams):
        os.dup2(stream, target)
    os.chdir(working_folder)
    os.environ.clear()
    os.environ.update(environment)
    code = 1
    try:
        importlib.import_module("colmem.adapters.cli").main()
        code = 0
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    except BaseException:  # noqa: BLE001 - the outermost frame of the fork
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        link.sendall(b"%d" % code)
        os._exit(code)


if __name__ == "__main__":
    _serve(sys.argv[1])
