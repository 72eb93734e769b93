"""Checks of the blocks that name colmem to other programs, against its real command line."""

import json
import re
import shlex
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from colmem.adapters.cli import cli
from colmem.adapters.http.tokens import read_tokens
from colmem.adapters.mcp_server import HTTP_PATH
from colmem.retrieval.settings import RankingSettings

TOP = Path(__file__).parents[2]
PROJECT = tomllib.loads((TOP / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def check_arguments(arguments: list[str]) -> None:
    """A command line of colmem, program name left out, is one that its parser takes."""
    name, *rest = arguments
    cli.commands[name].make_context(name, rest, parent=click.Context(cli))


def check_host(config: Any) -> None:
    """Every server of a host's configuration is colmem's: a command that parses, or its address."""
    servers = [*_servers(config)]
    assert servers
    for server in servers:
        if "url" in server:
            assert server["url"] == f"http://127.0.0.1:{_default('mcp', 'port')}{HTTP_PATH}"
        else:
            assert server["command"] == "colmem"
            assert server["args"][0] == "mcp"
            check_arguments(server["args"])


def check_install(command: str) -> None:
    """The extras that a ``pip install`` names exist."""
    extras = re.fullmatch(r"pip install '(?:colmem|\.)\[([a-z,]+)\]'", command)
    assert extras, command
    assert {*extras[1].split(",")} <= {*PROJECT["optional-dependencies"]}


def check_registration(command: str) -> None:
    """What a host is told to start, after two dashes, is a command of colmem that parses."""
    words = shlex.split(command)
    started = words[words.index("--") + 1 :]
    assert started[:2] == ["colmem", "mcp"]
    check_arguments(started[1:])


def check_titled(title: str, text: str, folder: Path) -> None:
    """A block with a title is what a file of that name holds; it is left there for others."""
    path = folder / title
    path.parent.mkdir(exist_ok=True)
    path.write_text(text, encoding="utf-8")
    if title == "ranking":
        RankingSettings.from_dict(json.loads(text))
    elif title == "tokens.json":
        assert len(read_tokens(path)) == len(json.loads(text))
    elif title.endswith(".jsonl"):
        assert [json.loads(line) for line in text.splitlines()]
    else:
        check_host(tomllib.loads(text) if title.endswith(".toml") else json.loads(text))


def _servers(config: Any) -> Iterator[dict[str, Any]]:
    if isinstance(config, dict):
        if "command" in config or "url" in config:
            yield config
        else:
            for value in config.values():
                yield from _servers(value)


def _default(command: str, option: str) -> Any:
    [found] = [p for p in cli.commands[command].params if p.name == option]
    return found.default
