"""What the tests of the surfaces share: running servers, and processes of the command line."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from colmem.adapters.http.server import running
from colmem.adapters.http.settings import ServerSettings
from colmem.adapters.http.tokens import Token
from colmem.tools import ToolScope

COLMEM = str(Path(sys.executable).with_name("colmem"))


class Server(NamedTuple):
    """A running server and the engine behind it."""

    url: str
    engine: Any


@contextmanager
def serving(engine: Any, **settings: Any) -> Iterator[Server]:
    """Serve an engine while the block runs, with any of the settings."""
    with running(engine, replace(ServerSettings(port=0), **settings)) as url:
        yield Server(url, engine)


def token(text: str, **scope: Any) -> Token:
    """A token with a scope of these fields."""
    return Token.of(text, ToolScope(**scope), name=text[:4])


@contextmanager
def process(*args: object, **environment: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A ``colmem serve`` process and its address; killed at the end if it still runs."""
    started = subprocess.Popen(
        [COLMEM, *map(str, args), "--port", "0"],
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | environment,
    )
    assert started.stderr is not None
    try:
        line = ""
        while "serving" not in line:
            line = started.stderr.readline()
            assert line, "the server ended before it listened"
        yield started, line.split(" on ")[1].split(";")[0]
    finally:
        started.kill()
        started.wait()
        started.stderr.close()
