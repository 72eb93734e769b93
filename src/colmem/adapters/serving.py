"""Commands that offer a store to others: serve, mcp, tools, context."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from colmem import ColmemError, ConfigError, Namespace, Reach, decode, encode
from colmem.adapters.options import Command, store_argument, text_of
from colmem.adapters.session import open_for_reading, open_for_writing, open_or_create, session
from colmem.contract import MissingExtra

if TYPE_CHECKING:
    from colmem.adapters.http.settings import ServerSettings
    from colmem.adapters.http.tokens import Token
    from colmem.tools import ToolScope

TOKEN_VARIABLE: Final = "COLMEM_TOKEN"
EVERYTHING: Final = "all"

_MAKERS = {"of": Reach.of, "exact": Reach.exact, "subtree": Reach.subtree}
_MADE = re.compile(r"(of|exact|subtree):(.*)", re.DOTALL)


class ReachText(click.ParamType[Any]):
    """How far reads see: a namespace, one with ``of:``, ``exact:``, ``subtree:``, or ``all``."""

    name = "reach"

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        """Read a reach."""
        if not isinstance(value, str) or value == EVERYTHING:
            return value
        try:
            if value.startswith("{"):
                return decode(value, Reach)
            match = _MADE.fullmatch(value)
            return _MAKERS[match[1]](match[2]) if match else Reach.of(value)
        except ColmemError as error:
            self.fail(
                f"{error.message}; expected all, PATH, exact:PATH or subtree:PATH", param, ctx
            )


class PlaceText(click.ParamType[Any]):
    """A namespace."""

    name = "path"

    def convert(self, value: Any, param: Any, ctx: Any) -> Namespace:
        """Read a namespace."""
        try:
            return Namespace(value)
        except ColmemError as error:
            self.fail(error.message, param, ctx)


_SCOPE_OPTIONS = (
    click.option("--place", type=PlaceText(), help="Namespace that writes go to.  [default: root]"),
    click.option(
        "--reach",
        type=ReachText(),
        help="How far reads see: all, PATH (it and what is above), exact:PATH or subtree:PATH.  "
        "[default: the place and what is above, all without --place]",
    ),
    click.option("--read-only", is_flag=True, help="Offer no writes."),
)
_LISTEN_OPTIONS = (
    click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on."),
    click.option("--port", default=8711, show_default=True, help="Port to listen on; 0 takes any."),
    click.option(
        "--allow-host",
        "hosts",
        multiple=True,
        metavar="NAME",
        help="Serve requests for this host name too; addresses and localhost always are.",
    ),
)


def _with(options: tuple[Any, ...]) -> Callable[[Any], Any]:
    def decorate(command: Any) -> Any:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


@click.command(cls=Command)
@store_argument
@_with(_LISTEN_OPTIONS)
@click.option(
    "--tokens",
    "tokens_file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="JSON array of {name, token or sha256, place, reach, writes}: who may do what.",
)
@click.option(
    "--snapshots",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder that snapshots are written to and loaded from; without it there are none.",
)
@click.option("--hotmem", is_flag=True, help="Answer HotMem's routes too, for its client.")
@click.option("--read-only", is_flag=True, help="Open the store for reading only.")
@click.option("--embedder", metavar="KEY", help="Embedder of a store that is made.")
@click.option(
    "--max-body", default=32, show_default=True, help="Largest body of a request, in megabytes."
)
@click.option(
    "--max-requests", default=256, show_default=True, help="Requests answered at the same time."
)
@click.option("--timeout", default=30.0, show_default=True, help="Seconds an operation may take.")
def serve(
    store: Path,
    read_only: bool,
    embedder: str | None,
    **options: Any,
) -> None:
    """Serve STORE over HTTP, made when absent; docs/http.md says how to use it.

    On 127.0.0.1 everybody on this machine may do everything. Any other --host needs tokens: those
    of --tokens, or one in the environment variable COLMEM_TOKEN, which may do everything.
    """
    server = _extra("http")
    settings = _settings(store, **options)
    with open_for_reading(store) if read_only else open_or_create(store, embedder) as engine:
        server.serve(engine, settings, _announce("serving"))


@click.command(cls=Command)
@store_argument
@_with(_SCOPE_OPTIONS)
@click.option("--http", "is_http", is_flag=True, help="Serve streamable HTTP instead of stdio.")
@_with(_LISTEN_OPTIONS)
def mcp(
    store: Path,
    place: Namespace | None,
    reach: Any,
    read_only: bool,
    is_http: bool,
    **options: Any,
) -> None:
    """Offer the memory tools of STORE to an MCP host, on standard input and output.

    What a model may reach is fixed here. With --http the address is http://HOST:PORT/mcp; a token
    in the environment variable COLMEM_TOKEN is then asked for, and needed beyond 127.0.0.1.
    """
    server = _extra("mcp")
    scope = _scope(place, reach, read_only)
    with _opened(store, read_only) as engine:
        if is_http:
            settings = _settings(store, **options)
            app = server.http_app(engine, scope, settings)
            _extra("http").serve_app(app, settings, _announce("serving MCP", server.HTTP_PATH))
        else:
            server.serve_stdio(engine, scope)


@click.command(cls=Command)
@store_argument
@_with(_SCOPE_OPTIONS)
@click.option("--call", metavar="NAME", help="Call this tool instead of listing them.")
@click.option("--args", "arguments", metavar="JSON", help="Its arguments; `-` reads them.")
def tools(
    store: Path,
    place: Namespace | None,
    reach: Any,
    read_only: bool,
    call: str | None,
    arguments: str | None,
) -> None:
    """List the tools that STORE offers to models, or call one as a model would."""
    from colmem.tools import MemoryTools  # noqa: PLC0415 - not for --help
    from colmem.tools.specs import WRITE_TOOLS  # noqa: PLC0415

    if arguments is not None and call is None:
        raise click.UsageError("--args belongs to --call")
    scope = _scope(place, reach, read_only)
    writes = call in WRITE_TOOLS and scope.writes
    with _opened(store, not writes) as engine:
        offered = MemoryTools(engine, scope)
        if call is None:
            for spec in offered.specs():
                _print(spec)
            return
        value = None if arguments is None else decode(text_of(arguments), Any)
        _print(offered.call(call, value))


@click.command(cls=Command)
@store_argument
@click.option("--budget", type=int, help="Tokens of the page at most.  [default: 1500]")
@click.option("--learnings", type=int, help="How many learnings at most.  [default: 20]")
@click.option("--reach", type=ReachText(), help="How far reads see, as for `mcp`.  [default: all]")
@click.option(
    "--spec",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="JSON of {budget_tokens, briefs, learnings_limit, reach}; the other options refine it.",
)
def context(
    store: Path,
    budget: int | None,
    learnings: int | None,
    reach: Any,
    spec: Path | None,
) -> None:
    """Compile STORE into a page of context for a model: who the user is, what is going on."""
    import msgspec  # noqa: PLC0415 - not for --help

    from colmem.context import ContextSpec, compile  # noqa: PLC0415

    chosen = ContextSpec() if spec is None else decode(spec.read_bytes(), ContextSpec)
    changes = {
        "budget_tokens": budget,
        "learnings_limit": learnings,
        "reach": None if reach == EVERYTHING else reach,
    }
    given = {name: value for name, value in changes.items() if value is not None}
    if reach == EVERYTHING:
        given["reach"] = None
    with open_for_reading(store) as engine:
        made = compile(engine, msgspec.structs.replace(chosen, **given))
    click.echo(encode(made) if session().is_json else made.markdown, nl=session().is_json)


def _opened(store: Path, read_only: bool) -> Any:
    return open_for_reading(store) if read_only else open_for_writing(store)


def _scope(place: Namespace | None, reach: Any, read_only: bool) -> ToolScope:
    from colmem.tools import ToolScope  # noqa: PLC0415 - not for --help

    if reach == EVERYTHING:
        chosen = None
    elif reach is None:
        chosen = None if place is None else Reach.of(place)
    else:
        chosen = reach
    return ToolScope(place=place or "root", reach=chosen, writes=not read_only)


def _settings(
    store: Path,
    host: str,
    port: int,
    hosts: tuple[str, ...],
    tokens_file: Path | None = None,
    snapshots: Path | None = None,
    hotmem: bool = False,
    max_body: int = 32,
    max_requests: int = 256,
    timeout: float = 30.0,
) -> ServerSettings:
    from colmem.adapters.http.settings import Limits, ServerSettings  # noqa: PLC0415 - as above

    if snapshots is not None:
        snapshots.mkdir(parents=True, exist_ok=True)
    return ServerSettings(
        host=host,
        port=port,
        hosts=frozenset(name.lower() for name in hosts),
        tokens=_tokens(tokens_file),
        store=store,
        snapshots=snapshots,
        hotmem=hotmem,
        limits=Limits(
            body_bytes_max=max_body << 20, requests_max=max_requests, timeout_seconds=timeout
        ),
    )


def _tokens(path: Path | None) -> tuple[Token, ...]:
    from colmem.adapters.http.tokens import Token, read_tokens  # noqa: PLC0415 - as above

    own = os.environ.get(TOKEN_VARIABLE)
    found = (Token.of(own, name=TOKEN_VARIABLE),) if own else ()
    if path is None:
        return found
    if path.stat().st_mode & 0o077:
        session().output.note(f"{path} can be read by others; `chmod 600 {path}` keeps it secret")
    tokens = read_tokens(path)
    if found and found[0].digest in {token.digest for token in tokens}:
        raise ConfigError(f"the token in {TOKEN_VARIABLE} is in {path} too; unset one of them")
    return found + tokens


def _announce(what: str, path: str = "") -> Callable[[str], None]:
    def announce(url: str) -> None:
        session().output.note(f"{what} on {url}{path}; stop it with Ctrl-C")

    return announce


def _extra(name: str) -> Any:
    """The module of an extra, or the words to install it."""
    try:
        if name == "mcp":
            from colmem.adapters import mcp_server  # noqa: PLC0415 - needs the extra

            return mcp_server
        from colmem.adapters.http import server  # noqa: PLC0415 - needs the extra

        return server
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("colmem"):
            raise
        raise MissingExtra(
            f"{error.name} is not installed; install it with `pip install colmem[{name}]`"
        ) from error


def _print(value: Any) -> None:
    indent = None if session().is_json else 2
    click.echo(json.dumps(value, ensure_ascii=False, indent=indent))


COMMANDS = (serve, mcp, tools, context)
