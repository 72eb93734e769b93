"""Commands that read: fetch, recall, list, get, explore."""

from __future__ import annotations

from pathlib import Path

import click

from colmem import (
    ColmemError,
    Facet,
    FetchMode,
    FetchRequest,
    MetaFilter,
    Reach,
)
from colmem.adapters.options import (
    STDIN,
    Command,
    filter_options,
    page_options,
    reach_options,
    store_argument,
    text_of,
)
from colmem.adapters.progress import Progress
from colmem.adapters.session import open_for_reading, session

ALL_PAGE_ITEMS = 1_000  # of `list --all`


@click.command(cls=Command)
@store_argument
@click.argument("query")
@click.option(
    "--mode",
    type=click.Choice([*map(str, FetchMode)]),
    default="hybrid",
    show_default=True,
    help="Rank by words, by meaning, or by both.",
)
@click.option("--full", is_flag=True, help="Show whole texts instead of excerpts.")
@click.option("--explain", is_flag=True, help="Show what each score is made of.")
@click.option("--why-not", metavar="ID", help="Explain, and say why the item ID did not come.")
@page_options(10)
@filter_options
def fetch(
    store: Path,
    query: str,
    mode: str,
    full: bool,
    explain: bool,
    why_not: str | None,
    limit: int,
    cursor: str | None,
    filter: MetaFilter,
) -> None:
    """Find what fits QUERY, best first; `-` reads the query from standard input."""
    request = FetchRequest(
        query=text_of(query), mode=mode, limit=limit, cursor=cursor, filter=filter
    )
    explanation = None
    with Progress("fetching"), open_for_reading(store) as engine:
        page = engine.fetch(request)
        if explain or why_not is not None:
            explanation = engine.explain(request, why_not)
    output = session().output
    if explanation is not None:
        output.explained(page.hits, request.query, explanation)
    elif full:
        output.items(page.hits)
    else:
        output.hits(page.hits, request.query)
    output.more(page.next_cursor)


@click.command(cls=Command)
@store_argument
@click.argument("question")
@click.option("--limit", "-n", default=5, show_default=True, help="How many citations at most.")
@click.option("--instructions", help="How to answer, such as `one sentence`.")
@filter_options
def recall(
    store: Path, question: str, limit: int, instructions: str | None, filter: MetaFilter
) -> None:
    """Answer QUESTION from what is stored, with citations; `-` reads standard input."""
    with Progress("recalling"), open_for_reading(store) as engine:
        answer = engine.recall(
            question=text_of(question), limit=limit, instructions=instructions, filter=filter
        )
    session().output.answer(answer)


@click.command(cls=Command, name="list")
@store_argument
@page_options(20)
@click.option("--all", "is_all", is_flag=True, help="Every item, page after page.")
@filter_options
def list_(store: Path, limit: int, cursor: str | None, is_all: bool, filter: MetaFilter) -> None:
    """List items in the order they were stored."""
    output = session().output
    size = max(limit, ALL_PAGE_ITEMS) if is_all else limit
    with open_for_reading(store) as engine:
        while True:
            page = engine.list(limit=size, cursor=cursor, filter=filter)
            output.hits(page.items)
            cursor = page.next_cursor
            if not is_all or cursor is None:
                break
    output.more(cursor)


@click.command(cls=Command)
@store_argument
@click.argument("ids", nargs=-1, required=True, metavar="ID...")
@reach_options
def get(store: Path, ids: tuple[str, ...], reach: Reach | None) -> None:
    """Show items by ID, whole, in the order named; `-` reads ids from standard input."""
    wanted = [id for given in ids for id in (text_of(given).split() if given == STDIN else [given])]
    with open_for_reading(store) as engine:
        hits = engine.get(ids=wanted, reach=reach)
    output = session().output
    output.items(hits)
    missing = len({*wanted}) - len(hits)
    if missing:
        output.note(f"{missing:,} of {len({*wanted}):,} ids not found")


@click.command(cls=Command)
@store_argument
@click.argument("facet", type=click.Choice([*map(str, Facet)]), metavar="FACET")
@click.option("--limit", "-n", default=20, show_default=True, help="How many values at most.")
@click.option(
    "--narrow",
    multiple=True,
    metavar="FACET=VALUE",
    help="Only items with this value, as an explore before showed it; may be repeated.",
)
@filter_options
def explore(
    store: Path, facet: str, limit: int, narrow: tuple[str, ...], filter: MetaFilter
) -> None:
    """Count items along FACET.

    Facets: kind, source, source_id, workspace, folder, file_path, language, repo, url, thread,
    agent, tool_call, tag, namespace.
    """
    for pair in narrow:
        filter = _narrowed(filter, pair)
    with open_for_reading(store) as engine:
        page = engine.explore(facet=facet, limit=limit, filter=filter)
    session().output.buckets(page)


def _narrowed(filter: MetaFilter, pair: str) -> MetaFilter:
    name, equals, value = pair.partition("=")
    if not equals or name not in list(Facet):
        raise click.BadParameter(
            f"{pair!r} is not FACET=VALUE; facets are {', '.join(Facet)}", param_hint="'--narrow'"
        )
    try:
        return Facet(name).narrow(filter, value)
    except ColmemError as error:
        raise click.BadParameter(error.message, param_hint="'--narrow'") from error


COMMANDS = (fetch, recall, list_, get, explore)
