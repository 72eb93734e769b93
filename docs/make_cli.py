"""Writes docs/cli.md from the commands' own help; ``--check`` only says whether it is current."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from colmem.adapters.cli import cli

TARGET = Path(__file__).with_name("cli.md")
WIDTH = 100
HEAD = """\
# The command line

Made from `--help` by `make docs`; do not edit.

Data goes to standard output, words to standard error. Exit codes: 0 done, 1 failed, 2 the command
line itself is wrong. `-` in place of a text, query, question, id or file is standard input.

`--json` prints the contract's wire JSON, one object a line:

| command | lines |
|---|---|
| `fetch`, `list`, `get` | a hit each; where a page ends, `{"next_cursor":…}` on standard error |
| `fetch --explain` | the explanation of the page |
| `recall` | the answer with its citations |
| `explore` | the page of buckets |
| `store` | a receipt each |
| `forget` | `{"forgotten":n}`; without `--yes` `{"would_forget":n,"kinds":{…}}` and exit code 1 |
| `sql` | a row each |
| `init`, `import`, `health`, `stats`, `check`, `compact`, `reembed` | one object of facts |

Errors are then `{"error":code,"message":text}` on standard error, notes `{"note":text}`.
"""


def render() -> str:
    """The whole page."""
    top = click.Context(cli, info_name="colmem")
    commands = (_section(f"colmem {name}", cli.commands[name], top) for name in cli.commands)
    return "\n".join([HEAD, _section("colmem", cli, None), *commands])


def _section(title: str, command: click.Command, parent: click.Context | None) -> str:
    name = title.split()[-1]
    context = click.Context(
        command, info_name=name, parent=parent, terminal_width=WIDTH, max_content_width=WIDTH
    )
    lines = [line.rstrip() for line in command.get_help(context).splitlines()]
    return f"## {title}\n\n```text\n" + "\n".join(lines) + "\n```\n"


if __name__ == "__main__":
    if "--check" not in sys.argv:
        TARGET.write_text(render(), encoding="utf-8")
    elif not TARGET.exists() or TARGET.read_text(encoding="utf-8") != render():
        sys.exit(f"{TARGET.name} is not what --help says; run `make docs`")
