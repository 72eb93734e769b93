"""Options that commands share: store path, output, filters, reach, metadata of an item.

Each decorator adds its options and hands the command one contract value instead of them. A value
that cannot be read is an error of usage.
"""

from __future__ import annotations

import functools
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import click

from colmem import (
    ColmemError,
    ItemKind,
    MemoryMeta,
    MetaFilter,
    Reach,
    SourceKind,
    SourceRef,
    Timestamp,
    ToolCallRef,
    TurnRange,
    decode,
)
from colmem.adapters.session import session

Function = Callable[..., Any]

_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")
_TURNS = re.compile(r"(\d+)(?:-(\d+))?")
STDIN: Final = "-"


class Instant(click.ParamType[Any]):
    """RFC 3339 text, or a date for its midnight UTC."""

    name = "time"

    def convert(self, value: Any, param: Any, ctx: Any) -> Timestamp:
        """Read an instant."""
        if isinstance(value, Timestamp):
            return value
        text = f"{value}T00:00:00Z" if _DAY.fullmatch(value) else value
        try:
            return Timestamp.parse(text)
        except ColmemError as error:
            self.fail(f"{error.message}, or a date such as 2026-10-04", param, ctx)


class Turns(click.ParamType[Any]):
    """A range of turns: ``4-5``, or ``4`` for that turn alone."""

    name = "first-last"

    def convert(self, value: Any, param: Any, ctx: Any) -> TurnRange:
        """Read a range."""
        if isinstance(value, TurnRange):
            return value
        match = _TURNS.fullmatch(value)
        if match is None:
            self.fail(f"{value!r} is no range of turns, expected one such as 4-5", param, ctx)
        try:
            return TurnRange(int(match[1]), int(match[2] or match[1]))
        except ColmemError as error:
            self.fail(error.message, param, ctx)


class FilterJson(click.ParamType[Any]):
    """A filter as the contract's JSON."""

    name = "json"

    def convert(self, value: Any, param: Any, ctx: Any) -> MetaFilter:
        """Read a filter."""
        if isinstance(value, MetaFilter):
            return value
        try:
            return decode(value, MetaFilter)
        except ColmemError as error:
            self.fail(f"{error.message}; see the filter of the contract", param, ctx)


class Command(click.Command):
    """A command with the options that every one has."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.params += [
            click.Option(
                ["--json"],
                is_flag=True,
                expose_value=False,
                callback=_set("is_json"),
                help="Print JSON, one object a line.",
            ),
            click.Option(
                ["--debug"],
                is_flag=True,
                expose_value=False,
                is_eager=True,
                callback=_set("is_debug"),
                help="Show the traceback of an error.",
            ),
        ]


def _set(name: str) -> Callable[[click.Context, click.Parameter, bool], None]:
    def set_option(ctx: click.Context, param: click.Parameter, value: bool) -> None:
        if value:
            setattr(session(), name, True)

    return set_option


store_argument = click.argument(
    "store", type=click.Path(path_type=Path), metavar="STORE", required=True
)

_EXACT = {
    "workspace": ("--workspace", "workspace", "TEXT"),
    "folder": ("--folder", "folder", "PATH"),
    "file_path": ("--file-path", "file path", "PATH"),
    "language": ("--language", "language, such as en or python", "TEXT"),
    "repo": ("--repo", "repository", "TEXT"),
    "commit": ("--commit", "commit", "TEXT"),
    "url": ("--url", "url", "TEXT"),
    "thread_id": ("--thread", "thread", "ID"),
    "agent_id": ("--agent", "agent", "ID"),
    "tool_call": ("--tool", "tool, by its name", "TEXT"),
    "source_id": ("--source-id", "source, by its id", "ID"),
}
_HINTS = {"folder": " or below", "file_path": " or below"}

_REACH_OPTIONS = (
    click.option(
        "--at",
        "--namespace",
        "at",
        metavar="PATH",
        help="Only what is seen from this namespace, such as agent:scout or ws:acme/user:ann.",
    ),
    click.option(
        "--inherit/--no-inherit",
        default=None,
        help="See the namespaces above --at too.  [default: inherit]",
    ),
    click.option("--descendants", is_flag=True, help="See the namespaces below --at too."),
)
_FILTER_OPTIONS = (
    click.option(
        "--kind",
        "kinds",
        multiple=True,
        type=click.Choice([*map(str, ItemKind)]),
        help="Only this kind.",
    ),
    click.option(
        "--source",
        "sources",
        multiple=True,
        type=click.Choice([*map(str, SourceKind)]),
        help="Only from this kind of source.",
    ),
    click.option("--tag", "tags_any", multiple=True, metavar="TAG", help="Only with this tag."),
    *(
        click.option(
            flag, name, metavar=metavar, help=f"Only of this {words}{_HINTS.get(name, '')}."
        )
        for name, (flag, words, metavar) in _EXACT.items()
    ),
    click.option("--turns", type=Turns(), help="Only of exactly these turns, such as 4-5."),
    click.option(
        "--after", "observed_after", type=Instant(), help="Only observed at this time or later."
    ),
    click.option(
        "--before", "observed_before", type=Instant(), help="Only observed before this time."
    ),
    *_REACH_OPTIONS,
    click.option(
        "--filter",
        "base",
        type=FilterJson(),
        help="A whole filter as JSON; the other options refine it.",
    ),
)
_FILTER_FIELDS = (
    "kinds",
    "sources",
    "tags_any",
    *_EXACT,
    "turns",
    "observed_after",
    "observed_before",
)
_META_OPTIONS = (
    click.option("--tag", "tags", multiple=True, metavar="TAG", help="Tag; may be repeated."),
    *(
        click.option(flag, name, metavar=metavar, help=f"Its {words}.")
        for name, (flag, words, metavar) in _EXACT.items()
    ),
    click.option("--turns", type=Turns(), help="Its range of turns in the thread, such as 4-5."),
    click.option(
        "--source",
        type=click.Choice([*map(str, SourceKind)]),
        help="Kind of its source.  [default: agent]",
    ),
    click.option("--namespace", metavar="PATH", help="Namespace it lives in.  [default: root]"),
    click.option("--observed-at", type=Instant(), help="When it was observed."),
)


def filter_options(command: Function) -> Function:
    """Add the filter options; the command gets ``filter``."""

    @functools.wraps(command)
    def wrapped(**options: Any) -> Any:
        base = options.pop("base") or MetaFilter()
        given = {name: options.pop(name) for name in _FILTER_FIELDS}
        changes = {name: value for name, value in given.items() if value not in (None, ())}
        reach = _reach(options)
        if reach is not None:
            changes["reach"] = reach
        return command(filter=base.replace(**changes), **options)

    return _decorated(wrapped, _FILTER_OPTIONS)


def reach_options(command: Function) -> Function:
    """Add the options of a reach; the command gets ``reach``."""

    @functools.wraps(command)
    def wrapped(**options: Any) -> Any:
        return command(reach=_reach(options), **options)

    return _decorated(wrapped, _REACH_OPTIONS)


def meta_options(command: Function) -> Function:
    """Add the options of an item's metadata; the command gets ``meta``."""

    @functools.wraps(command)
    def wrapped(**options: Any) -> Any:
        fields = {name: options.pop(name) for name in _EXACT}
        fields |= {name: options.pop(name) for name in ("tags", "turns", "observed_at")}
        tool, source_id = fields.pop("tool_call"), fields.pop("source_id")
        source, namespace = options.pop("source"), options.pop("namespace")
        if source is not None or source_id is not None:
            fields["source"] = SourceRef(source or SourceKind.AGENT, source_id)
        if tool is not None:
            fields["tool_call"] = ToolCallRef(tool)
        try:
            meta = MemoryMeta(namespace=namespace or "root", **fields)
        except ColmemError as error:
            raise click.BadParameter(error.message, param_hint="'--namespace'") from error
        return command(meta=meta, **options)

    return _decorated(wrapped, _META_OPTIONS)


def page_options(default: int) -> Callable[[Function], Function]:
    """Add ``--limit`` and ``--cursor``."""

    def decorate(command: Function) -> Function:
        return _decorated(
            command,
            (
                click.option(
                    "--limit", "-n", default=default, show_default=True, help="How many at most."
                ),
                click.option("--cursor", help="Go on where a page ended, with its cursor."),
            ),
        )

    return decorate


def text_of(value: str) -> str:
    """The value of an argument, ``-`` being standard input."""
    if value != STDIN:
        return value
    data: bytes = sys.stdin.buffer.read()
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise click.ClickException(
            f"standard input: byte {error.start} is not UTF-8; convert the text to UTF-8 first"
        ) from error


def _reach(options: dict[str, Any]) -> Reach | None:
    at, inherit, descendants = (options.pop(name) for name in ("at", "inherit", "descendants"))
    if at is None and inherit is None and not descendants:
        return None
    try:
        return Reach(at=at or "root", inherit=inherit is not False, descendants=descendants)
    except ColmemError as error:
        raise click.BadParameter(error.message, param_hint="'--at'") from error


def _decorated(command: Function, options: tuple[Any, ...]) -> Function:
    for option in reversed(options):
        command = option(command)
    return command
