"""How answers are printed: tables for people, or JSON lines for programs.

Commands compute, an output prints. JSON is the contract's own wire form: one object a line, hits
and rows a line each. Words (notes, errors) go to standard error in both.
"""

from __future__ import annotations

import json
import re
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import click

from colmem import (
    EngineHealth,
    ExplorePage,
    ForgetReport,
    HealthState,
    Hit,
    MemoryMeta,
    RecallAnswer,
    StoreReceipt,
    encode,
)
from colmem.adapters.excerpts import excerpt, pattern_of
from colmem.adapters.explained import hit_lines, summary_lines, why_not_lines
from colmem.explanation import Explanation

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

WIDTH_DEFAULT = 100  # columns when the output is no terminal
BAR_COLUMNS = 24
EXCERPT_LINES = 2
CELL_CHARS_MAX = 200  # of a cell of a SQL answer
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")  # all but tab and newline
_SIZES = ("B", "KB", "MB", "GB", "TB")


class Output(Protocol):
    """What commands print."""

    def note(self, text: str) -> None:
        """Say something about the work, beside the data."""

    def error(self, code: str, message: str) -> None:
        """Say why a command failed."""

    def facts(self, facts: Mapping[str, Any]) -> None:
        """Print named values."""

    def receipts(self, receipts: Sequence[StoreReceipt]) -> None:
        """Print what became of stored items."""

    def hits(self, hits: Sequence[Hit], query: str = "", first: int = 1) -> None:
        """Print hits in short, with ranks and scores where there is a query."""

    def explained(self, hits: Sequence[Hit], query: str, explanation: Explanation) -> None:
        """Print hits in short with what their scores are made of."""

    def items(self, hits: Sequence[Hit]) -> None:
        """Print items whole."""

    def more(self, cursor: str | None) -> None:
        """Say how to go on where a page ends."""

    def answer(self, answer: RecallAnswer) -> None:
        """Print an answer and what it cites."""

    def buckets(self, page: ExplorePage) -> None:
        """Print values with their counts."""

    def forgotten(self, report: ForgetReport) -> None:
        """Print how many items went."""

    def would_forget(self, count: int, kinds: Mapping[str, int]) -> None:
        """Print how many items would go."""

    def health(self, health: EngineHealth) -> None:
        """Print how the engine is doing."""

    def rows(self, table: Any) -> None:
        """Print an Arrow table."""


class JsonOutput:
    """JSON, one object a line; ``docs/cli.md`` names the object of each command."""

    def note(self, text: str) -> None:
        """Say something on standard error, as an object too."""
        click.echo(_json({"note": text}), err=True)

    def error(self, code: str, message: str) -> None:
        """Print the error's code and text on standard error."""
        click.echo(_json({"error": code, "message": message}), err=True)

    def facts(self, facts: Mapping[str, Any]) -> None:
        """Print one object."""
        click.echo(_json(facts))

    def receipts(self, receipts: Sequence[StoreReceipt]) -> None:
        """Print a receipt a line."""
        self._lines(receipts)

    def hits(self, hits: Sequence[Hit], query: str = "", first: int = 1) -> None:
        """Print a hit a line."""
        self._lines(hits)

    def explained(self, hits: Sequence[Hit], query: str, explanation: Explanation) -> None:
        """Print the explanation, one object."""
        self._lines([explanation])

    def items(self, hits: Sequence[Hit]) -> None:
        """Print a hit a line."""
        self._lines(hits)

    def more(self, cursor: str | None) -> None:
        """Print the cursor on standard error, so that every line of output is a hit."""
        if cursor is not None:
            click.echo(_json({"next_cursor": cursor}), err=True)

    def answer(self, answer: RecallAnswer) -> None:
        """Print the answer."""
        self._lines([answer])

    def buckets(self, page: ExplorePage) -> None:
        """Print the page."""
        self._lines([page])

    def forgotten(self, report: ForgetReport) -> None:
        """Print the report."""
        self._lines([report])

    def would_forget(self, count: int, kinds: Mapping[str, int]) -> None:
        """Print the counts."""
        click.echo(_json({"would_forget": count, "kinds": dict(kinds)}))

    def health(self, health: EngineHealth) -> None:
        """Print the state."""
        self._lines([health])

    def rows(self, table: Any) -> None:
        """Print a row a line."""
        for row in _rows(table):
            click.echo(_json(row))

    @staticmethod
    def _lines(values: Iterable[Any]) -> None:
        for value in values:
            click.echo(encode(value))


class TextOutput:
    """Tables and colour on a terminal, the same without colour elsewhere."""

    def note(self, text: str) -> None:
        """Say something on standard error."""
        click.echo(text, err=True)

    def error(self, code: str, message: str) -> None:
        """Print the text on standard error."""
        click.echo(f"{click.style('error:', fg='red', bold=True)} {message}", err=True)

    def facts(self, facts: Mapping[str, Any]) -> None:
        """Print a line for each value, nested ones indented."""
        from rich.text import Text  # noqa: PLC0415 - rich only when it prints

        grid = _grid(2)
        for name, value in _flat({name: v for name, v in facts.items() if v not in ({}, [])}):
            grid.add_row(Text(name.replace("_", " "), "dim"), Text(value))
        _print(grid)

    def receipts(self, receipts: Sequence[StoreReceipt]) -> None:
        """Print ids."""
        for receipt in receipts:
            click.echo(f"{'held already' if receipt.replayed else 'stored'} {receipt.id}")

    def hits(self, hits: Sequence[Hit], query: str = "", first: int = 1) -> None:
        """Print rank, score and an excerpt around the query's words."""
        self._ranked(hits, query, first, [()] * len(hits))

    def explained(self, hits: Sequence[Hit], query: str, explanation: Explanation) -> None:
        """Print hits with the parts of their scores below, then what holds for the ranking."""
        below = [[*hit_lines(shown)] for shown in explanation.hits]
        first = explanation.hits[0].rank if explanation.hits else 1
        self._ranked(hits, query, first, below)
        for line in summary_lines(explanation):
            self.note(printable(line))
        if explanation.why_not is not None:
            for line in why_not_lines(explanation.why_not):
                self.note(printable(line))

    def _ranked(
        self, hits: Sequence[Hit], query: str, first: int, below: Sequence[Sequence[str]]
    ) -> None:
        from rich.console import Group  # noqa: PLC0415 - rich only when it prints
        from rich.text import Text  # noqa: PLC0415

        if not hits:
            self.note("nothing found")
            return
        grid = _grid(3 if query else 1)
        room = (_console().width - 14) * EXCERPT_LINES - 2
        for rank, (hit, lines) in enumerate(zip(hits, below, strict=True), first):
            body = Group(
                *_excerpt_lines(hit, query, room),
                Text(_about(hit), "dim"),
                Text(hit.id, "dim"),
                *(Text(printable(line), "dim") for line in lines),
            )
            if query:
                score = Text(f"{hit.score:.3f}", "cyan")
                grid.add_row(Text(str(rank), "bold", justify="right"), score, body)
            else:
                grid.add_row(body)
        _print(grid)

    def items(self, hits: Sequence[Hit]) -> None:
        """Print texts whole, below their metadata."""
        from rich.text import Text  # noqa: PLC0415 - rich only when it prints

        for i, hit in enumerate(hits):
            if i:
                click.echo()
            _print(Text(hit.id, "bold"), is_whole=True)
            _print(Text(_about(hit), "dim"), is_whole=True)
            _print(Text(printable(hit.text)), is_whole=True)

    def more(self, cursor: str | None) -> None:
        """Name the option that goes on."""
        if cursor is not None:
            self.note(f"more remain; go on with --cursor {cursor}")

    def answer(self, answer: RecallAnswer) -> None:
        """Print the answer, then its citations."""
        from rich.console import Group  # noqa: PLC0415 - rich only when it prints
        from rich.text import Text  # noqa: PLC0415

        _print(Text(printable(answer.answer)))
        if not answer.citations:
            return
        click.echo()
        grid = _grid(3)
        room = _console().width - 16
        for number, citation in enumerate(answer.citations, 1):
            score = "" if citation.score is None else f"{citation.score:.3f}"
            body = Group(
                Text(excerpt(printable(citation.snippet), "", room)),
                Text(_described(citation.kind, citation.meta), "dim"),
                Text(citation.id, "dim"),
            )
            grid.add_row(Text(f"[{number}]", "bold"), Text(score, "cyan"), body)
        _print(grid)

    def buckets(self, page: ExplorePage) -> None:
        """Print values, counts and bars, then what the table leaves out."""
        from rich.text import Text  # noqa: PLC0415 - rich only when it prints

        if page.buckets:
            grid = _grid(3)
            largest = page.buckets[0].count
            grid.add_row(Text(page.facet.value, "bold"), Text("items", "bold"), Text())
            for bucket in page.buckets:
                bar = "█" * max(1, round(BAR_COLUMNS * bucket.count / largest))
                count = Text(f"{bucket.count:,}", "cyan", justify="right")
                grid.add_row(Text(printable(bucket.value)), count, Text(bar, "blue"))
            _print(grid)
        said = [f"{page.total:,} items"]
        if page.missing:
            said.append(f"{page.missing:,} without {page.facet.value}")
        if page.more_buckets:
            said.append(f"{page.more_buckets:,} more values (--limit)")
        self.note(", ".join(said))

    def forgotten(self, report: ForgetReport) -> None:
        """Print how many items went."""
        click.echo(f"forgot {_items(report.forgotten)}")

    def would_forget(self, count: int, kinds: Mapping[str, int]) -> None:
        """Print how many items would go, by kind."""
        parts = ", ".join(f"{n:,} {kind}" for kind, n in kinds.items())
        click.echo(f"would forget {_items(count)}{f' ({parts})' if parts else ''}")

    def health(self, health: EngineHealth) -> None:
        """Print the state, and what ails the engine."""
        colours = {HealthState.OK: "green", HealthState.DEGRADED: "yellow"}
        state = click.style(health.state.value, fg=colours.get(health.state, "red"), bold=True)
        click.echo(state if health.reason is None else f"{state}: {health.reason}")

    def rows(self, table: Any) -> None:
        """Print a table."""
        from rich.table import Table  # noqa: PLC0415 - rich only when it prints
        from rich.text import Text  # noqa: PLC0415

        shown = Table(box=None, pad_edge=False, header_style="bold")
        for name in table.column_names:
            shown.add_column(Text(printable(name)), overflow="fold")
        for row in _rows(table):
            shown.add_row(*(Text(_cell(value)) for value in row.values()))
        _print(shown)
        self.note(f"{table.num_rows:,} row{'s' * (table.num_rows != 1)}")


def printable(text: str) -> str:
    """Make stored text harmless to a terminal: control characters become U+FFFD."""
    return _CONTROL.sub("\ufffd", text.replace("\r\n", "\n"))


def size_text(n_bytes: int) -> str:
    """A number of bytes with its unit, decimal."""
    value, unit = float(n_bytes), 0
    while value >= 1000 and unit < len(_SIZES) - 1:
        value, unit = value / 1000, unit + 1
    return f"{value:.0f} {_SIZES[unit]}" if unit == 0 else f"{value:.1f} {_SIZES[unit]}"


def _console() -> Console:
    from rich.console import Console  # noqa: PLC0415 - rich only when it prints

    width = None if sys.stdout.isatty() else shutil.get_terminal_size((WIDTH_DEFAULT, 25)).columns
    return Console(width=width, highlight=False, emoji=False, markup=False)


def _print(shown: Any, *, is_whole: bool = False) -> None:
    """Print something laid out; off a terminal without the blanks that fill its lines."""
    console = _console()
    if sys.stdout.isatty():
        console.print(shown, soft_wrap=is_whole)
        return
    with console.capture() as captured:
        console.print(shown, soft_wrap=is_whole)
    if is_whole:
        click.echo(captured.get(), nl=False)
    else:
        click.echo("\n".join(line.rstrip() for line in captured.get().splitlines()))


def _grid(n_columns: int) -> Table:
    from rich.table import Table  # noqa: PLC0415 - rich only when it prints

    grid = Table.grid(padding=(0, 2))
    for _ in range(n_columns):
        grid.add_column()
    return grid


def _excerpt_lines(hit: Hit, query: str, room: int) -> Iterator[Text]:
    from rich.text import Text  # noqa: PLC0415 - rich only when it prints

    text = printable(hit.text)
    title, newline, body = text.partition("\n\n")
    if hit.kind == "document" and title.startswith("# ") and newline and "\n" not in title:
        yield Text(title.removeprefix("# "), "bold", no_wrap=True, overflow="ellipsis")
        text = body
    shown = Text(excerpt(text, query, room))
    pattern = pattern_of(query)
    if pattern is not None:
        shown.highlight_regex(pattern, "bold yellow")
    yield shown


def _about(hit: Hit) -> str:
    parts = [_described(hit.kind, hit.meta)]
    if hit.confidence is not None:
        parts.append(f"confidence {float(hit.confidence):g}")
    return "  ".join(parts)


def _described(kind: str, meta: MemoryMeta) -> str:
    """One line of metadata: where it is first, then what it is."""
    places = [meta.file_path or meta.folder, meta.url, meta.repo, meta.workspace, meta.thread_id]
    parts = [str(kind), *(place for place in places if place)]
    if not meta.namespace.is_root:
        parts.append(meta.namespace)
    if meta.language:
        parts.append(meta.language)
    parts += [f"#{tag}" for tag in meta.tags]
    return printable("  ".join(parts).replace("\n", " "))


def _flat(facts: Mapping[str, Any], indent: str = "") -> Iterator[tuple[str, str]]:
    for name, value in facts.items():
        if isinstance(value, Mapping):
            yield f"{indent}{name}", ""
            yield from _flat({k: _sized(name, v) for k, v in value.items()}, indent + "  ")
        elif isinstance(value, list):
            yield f"{indent}{name}", "\n".join(printable(str(each)) for each in value)
        else:
            shown = _sized(name, value)
            is_count = isinstance(shown, int) and not isinstance(shown, bool)
            yield f"{indent}{name}", f"{shown:,}" if is_count else printable(str(shown))


def _sized(name: str, value: Any) -> Any:
    is_size = isinstance(value, int) and name.split("_")[0] == "bytes"
    return size_text(value) if is_size else value


def _items(count: int) -> str:
    return f"{count:,} item{'s' * (count != 1)}"


def _cell(value: Any) -> str:
    text = "" if value is None else printable(str(value)).replace("\n", " ")
    return text if len(text) <= CELL_CHARS_MAX else text[: CELL_CHARS_MAX - 1] + "…"


def _rows(table: Any) -> Iterator[dict[str, Any]]:
    for batch in table.to_batches():
        yield from batch.to_pylist()


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)
