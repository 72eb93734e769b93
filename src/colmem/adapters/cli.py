"""The command line: one group, its commands by concern, and what an error turns into.

Exit codes: 0 done, 1 failed, 2 the command line itself is wrong. Data goes to standard output,
words to standard error. Nothing heavy is imported before a command runs.
"""

from __future__ import annotations

import logging
import os
import sys
import traceback
from collections.abc import Sequence
from typing import Any, NoReturn

import click

from colmem import ColmemError, __version__
from colmem.adapters import moving, reading, serving, upkeep, writing
from colmem.adapters.session import Session

DONE, FAILED, USAGE = 0, 1, 2


class CommandLine(click.Group):
    """The group of all commands; the outermost frame, which turns errors into exit codes."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names of the commands, in the order one meets them."""
        return list(self.commands)

    def main(  # type: ignore[override]
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        **extra: Any,
    ) -> NoReturn:
        """Run one command line and end the process with its exit code."""
        session = Session()
        extra |= {"standalone_mode": False, "obj": session}
        try:
            code = super().main(args, prog_name or "colmem", **extra)
        except click.UsageError as error:
            error.show()
            code = USAGE
        except click.ClickException as error:
            code = _failed(session, "error", error.format_message())
        except (click.Abort, KeyboardInterrupt):
            code = _failed(session, "interrupted", "interrupted; what was stored stays stored")
        except BrokenPipeError:
            # The reader of our output has gone; nothing more can be said to it.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            code = FAILED
        except ColmemError as error:
            code = _failed(session, error.code, str(error))
        except OSError as error:
            name = f"{error.filename}: " if error.filename else ""
            code = _failed(session, "os_error", f"{name}{error.strerror or error}")
        except Exception as error:  # noqa: BLE001 - the outermost frame
            text = f"unexpected {type(error).__name__}: {error}"
            code = _failed(session, "internal", f"{text}; run again with --debug for the traceback")
        sys.exit(code if isinstance(code, int) else DONE)


def _failed(session: Session, code: str, message: str) -> int:
    if session.is_debug:
        traceback.print_exc()
    session.output.error(code, message)
    return FAILED


@click.group(
    cls=CommandLine,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Every command has --help, and --json for output that programs read.",
)
@click.version_option(__version__, "--version", message="colmem %(version)s")
def cli() -> None:
    """Keep a memory of documents, conversations and learnings in a directory, and find it again."""


for command in (
    *writing.COMMANDS,
    *reading.COMMANDS,
    *moving.COMMANDS,
    *upkeep.COMMANDS,
    *serving.COMMANDS,
):
    cli.add_command(command)


def main() -> None:
    """Run the command line of this process."""
    teller = logging.StreamHandler()  # to standard error
    teller.setFormatter(logging.Formatter("%(message)s"))
    kernels = logging.getLogger("colmem.kernels")
    kernels.addHandler(teller)
    kernels.setLevel(logging.INFO)
    cli.main()
