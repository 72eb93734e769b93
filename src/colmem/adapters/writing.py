"""Commands that write: init, store, import, forget."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Final

import click

from colmem import (
    Facet,
    ForgetReport,
    ItemKind,
    LearningKind,
    MemoryMeta,
    MetaFilter,
    Role,
    StoreItem,
    Turn,
    conversation,
    document,
    learning,
)
from colmem.adapters.options import (
    STDIN,
    Command,
    FilterJson,
    filter_options,
    meta_options,
    store_argument,
    text_of,
)
from colmem.adapters.progress import Progress
from colmem.adapters.session import open_for_writing, open_or_create, session

IDS_PER_GET: Final = 200
_TURN = re.compile(rf"({'|'.join(Role)}): (.*)")


@click.command(cls=Command)
@store_argument
@click.option("--embedder", metavar="KEY", help="Embedder of the store.  [default: static-s256]")
def init(store: Path, embedder: str | None) -> None:
    """Make an empty store at STORE; one that is there already is left as it is."""
    with open_or_create(store, embedder) as engine:
        facts = engine.stats()
        session().output.facts({key: facts[key] for key in ("path", "items", "embedder", "dim")})


@click.command(cls=Command)
@store_argument
@click.argument("text")
@click.option(
    "--kind",
    type=click.Choice([*map(str, ItemKind)]),
    default="document",
    show_default=True,
    help="What it is.",
)
@click.option("--title", help="Title of a document.")
@click.option("--mime", help="Media type of a document, such as text/markdown.")
@click.option(
    "--learning-kind",
    type=click.Choice([*map(str, LearningKind)]),
    help="What a learning states.  [default: fact]",
)
@click.option("--confidence", type=float, help="How sure a learning is, 0 to 1.  [default: 0.8]")
@click.option("--evidence", help="What a learning rests on.")
@meta_options
def store(store: Path, text: str, kind: str, meta: MemoryMeta, **shape: Any) -> None:
    """Store one item with TEXT as its text; `-` reads it from standard input.

    A conversation's text has a line for each turn, as in `user: hello`; other lines go on with the
    turn above. The store is made when absent. Storing the same item again changes nothing.
    """
    item = _item(ItemKind(kind), text_of(text), meta, shape)
    with open_or_create(store) as engine:
        session().output.receipts([engine.store(item)])


@click.command(cls=Command, name="import")
@store_argument
@click.argument(
    "paths",
    nargs=-1,
    required=True,
    metavar="PATH...",
    type=click.Path(exists=True, allow_dash=True, path_type=Path),
)
@click.option("--include", multiple=True, metavar="GLOB", help="Read such files too, as text.")
@click.option("--exclude", multiple=True, metavar="GLOB", help="Pass such files and folders over.")
@click.option(
    "--mount", metavar="FOLDER", help="Folder the files get.  [default: / and the folder's name]"
)
@click.option(
    "--map", "mapping", multiple=True, metavar="NAME=FIELD", help="Read a column or key as a field."
)
@click.option("--namespace", metavar="PATH", help="Namespace of items that name none.")
@click.option("--workspace", metavar="TEXT", help="Workspace of items that name none.")
@click.option("--language", metavar="TEXT", help="Language of items that name none.")
@click.option("--tag", "tags", multiple=True, help="Tag of items that name none.")
@click.option("--filter", type=FilterJson(), help="Only items that a filter as JSON admits.")
@click.option("--embedder", metavar="KEY", help="Embedder of a store that is made.")
@click.option("--skip-bad", is_flag=True, help="Go on after a row or file that cannot be read.")
def import_(
    store: Path,
    paths: tuple[Path, ...],
    mapping: tuple[str, ...],
    filter: MetaFilter | None,
    embedder: str | None,
    skip_bad: bool,
    **options: Any,
) -> None:
    """Import files, folders and stores into STORE, made when absent; again adds nothing.

    \b
    .md .txt        a document each; title, tags and lang from Markdown front matter,
                    else the title from the first heading
    .jsonl          an item of the contract a line (it has `type`), kept as it is,
                    or an object of fields; `.jsonl.gz` too, and `-` for standard input
    .csv .parquet   a row an item, columns named as fields
    .json           an array of objects as in .jsonl, or an export: ChatGPT's
                    conversations.json, mem0's memories or history
    .zip .db        ChatGPT's export as downloaded; mem0's history.db
    another store   its items, kept as they are

    \b
    Fields: text, title, mime, kind, turns, learning_kind, confidence, evidence,
    namespace, workspace, folder, file_path, language, repo, commit, url, thread_id,
    agent_id, tags, observed_at, turn_first, turn_last, tool_name, tool_id,
    source_kind, source_id.

    Items get their source, folder and file path from where they stand, code files (--include) their
    language from the file's name, and documents the time of the file's last change.
    """  # noqa: D301 - click keeps the lines below its mark as they are
    from colmem.adapters.importing import Import, Options, scan  # noqa: PLC0415 - not for --help

    if store.resolve() in (path.resolve() for path in paths):
        raise click.UsageError(f"{store} cannot be imported into itself; name another source")
    fields = _mapping(mapping)
    found = scan(paths, Options(**options, mapped=(*fields,)))
    note = session().output.note
    run = Import(found, fields, note, skip_bad=skip_bad, filter=filter or MetaFilter())
    with (
        open_or_create(store, embedder) as engine,
        Progress("importing", found.size_bytes) as progress,
    ):
        report = engine.ingest(run.items(progress.update))
    run.finish()
    output = session().output
    output.facts(
        {
            "stored": report.stored,
            "replayed": report.replayed,
            "files": run.n_files,
            "skipped_files": {name: n for name, n in found.skipped.items() if n},
            "bad": run.n_bad,
            "seconds": round(report.seconds, 2),
            "items_per_second": round(report.total / max(report.seconds, 1e-9)),
        }
    )
    if run.stopped_by is not None:
        raise click.ClickException(
            f"{run.stopped_by}. The {report.total:,} items before it are stored; correct it and "
            "import again, or pass --skip-bad"
        )


@click.command(cls=Command)
@store_argument
@click.argument("ids", nargs=-1, metavar="[ID]...")
@filter_options
@click.option("--yes", is_flag=True, help="Do it; without, only say what would go.")
def forget(store: Path, ids: tuple[str, ...], filter: MetaFilter, yes: bool) -> None:
    """Forget items by ID, wherever they live, or all that the filter admits; not both.

    `-` reads ids from standard input, one a line.
    """
    wanted = _ids(ids)
    if bool(wanted) == (not filter.is_empty()):
        raise click.UsageError("name ids, or filter options that choose what to forget; not both")
    output = session().output
    with open_for_writing(store) as engine:
        if yes:
            report: ForgetReport = (
                engine.forget(ids=wanted) if wanted else engine.forget(filter=filter)
            )
            output.forgotten(report)
            return
        if wanted:
            parts = [wanted[i : i + IDS_PER_GET] for i in range(0, len(wanted), IDS_PER_GET)]
            found = [hit for part in parts for hit in engine.get(ids=part)]
            kinds = {kind.value: sum(hit.kind is kind for hit in found) for kind in ItemKind}
            count = len(found)
        else:
            page = engine.explore(facet=Facet.KIND, filter=filter)
            kinds = {bucket.value: bucket.count for bucket in page.buckets}
            count = page.total
        output.would_forget(count, {kind: n for kind, n in kinds.items() if n})
    raise click.ClickException("nothing was forgotten; run it again with --yes")


def _item(kind: ItemKind, text: str, meta: MemoryMeta, shape: dict[str, Any]) -> StoreItem:
    given = {name for name, value in shape.items() if value is not None}
    takes = {
        ItemKind.DOCUMENT: {"title", "mime"},
        ItemKind.LEARNING: {"learning_kind", "confidence", "evidence"},
        ItemKind.CONVERSATION: set[str](),
    }[kind]
    if given - takes:
        flags = ", ".join(f"--{name.replace('_', '-')}" for name in sorted(given - takes))
        raise click.UsageError(f"a {kind} takes no {flags}; choose another --kind")
    if kind is ItemKind.LEARNING:
        fields = {name: shape[name] for name in ("confidence", "evidence") if name in given}
        return learning(text, kind=shape["learning_kind"] or LearningKind.FACT, meta=meta, **fields)
    if kind is ItemKind.CONVERSATION:
        return conversation(_turns(text), meta=meta)
    return document(text, title=shape["title"], mime=shape["mime"], meta=meta)


def _turns(text: str) -> list[Turn]:
    turns: list[Turn] = []
    for line in text.strip("\n").split("\n"):
        match = _TURN.fullmatch(line)
        if match:
            turns.append(Turn(Role(match[1]), match[2]))
        elif turns:
            turns[-1] = Turn(turns[-1].role, f"{turns[-1].text}\n{line}")
        else:
            raise click.UsageError(
                "a conversation's text begins each turn with its role, as in `user: hello`; roles "
                f"are {', '.join(Role)}"
            )
    return turns


def _mapping(pairs: tuple[str, ...]) -> dict[str, str]:
    from colmem.adapters.importing import FIELDS  # noqa: PLC0415 - not for --help

    mapping = {}
    for pair in pairs:
        name, equals, field = pair.rpartition("=")
        if not equals or field not in FIELDS:
            raise click.BadParameter(
                f"{pair!r} is not NAME=FIELD; fields are {', '.join(FIELDS)}", param_hint="'--map'"
            )
        mapping[name] = field
    return mapping


def _ids(ids: tuple[str, ...]) -> list[str]:
    """The ids named, those on standard input included."""
    named: list[str] = []
    for id in ids:
        named += text_of(STDIN).split() if id == STDIN else [id]
    return named


COMMANDS = (init, store, import_, forget)
