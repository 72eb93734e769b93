"""Opening a store: path, lock, settings, embedder, table and generation, in that order.

Everything that can refuse refuses before anything is changed. What an earlier process left half
done (a generation not switched to, a stale index) is completed or removed here.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from colmem import settings as store_settings
from colmem.contract import ColmemError, ConfigError, CorruptStore, Embedder
from colmem.embed import DEFAULT_KEY
from colmem.embed import embedder as embedder_of
from colmem.embedding import embed_texts, pieces_function
from colmem.files import fsync_folder
from colmem.index.analyser import ANALYSER_VERSION
from colmem.long_items import LongItems
from colmem.retrieval.settings import RankingSettings
from colmem.settings import EmbedderRecord, Settings
from colmem.storage.lock import StoreLock
from colmem.storage.table import FILE_NAME as TABLE_FILE
from colmem.storage.table import Table
from colmem.store import Store
from colmem.version import __version__

THREADS = 2  # of the lexical index, when the caller does not say
_PARTS = ("vectors", "rows", "lexical")


class Opened(NamedTuple):
    """An open store and what was decided on the way; ``embedder`` is None when not available."""

    store: Store
    settings: Settings
    embedder: Embedder | None
    embedder_problem: str
    ranking: RankingSettings
    release: Callable[[], None]


class Options(NamedTuple):
    """The arguments of ``colmem.open``."""

    embedder: Embedder | str | None = None
    create: bool = True
    read_only: bool = False
    threads: int | None = None
    memory_limit: str | None = None
    exact: bool = False


def open_store(path: str | Path, options: Options) -> Opened:
    """Open or create a store.

    Raises
    ------
    ConfigError
        When the path cannot be a store, the embedder is unknown or not the recorded one, or an
        option does not fit.
    StoreLocked, CorruptStore, VersionUnsupported
        As their names say; nothing is changed then.
    """
    wanted = _wanted(options.embedder)
    if str(path) == ":memory:":
        embedder = wanted or embedder_of(DEFAULT_KEY)
        settings = _new_settings(embedder)
        table = Table(None, threads=options.threads, memory_limit=options.memory_limit)
        store = _store(None, 0, embedder.dim, embedder, table, options)
        ranking = RankingSettings()
        search_passages(store, embedder, ranking)
        return Opened(store, settings, embedder, "", ranking, table.close)
    folder = Path(path)
    exists = store_settings.check_folder(folder, create=options.create and not options.read_only)
    if not exists:
        _make_folder(folder)
    lock = StoreLock(folder, exclusive=not options.read_only)
    try:
        return _open_locked(folder, exists, wanted, options, lock)
    except BaseException:
        lock.release()
        raise


def _open_locked(
    folder: Path, exists: bool, wanted: Embedder | None, options: Options, lock: StoreLock
) -> Opened:
    if not exists:
        store_settings.write(folder, _new_settings(wanted or embedder_of(DEFAULT_KEY)))
    settings = store_settings.read(folder)
    if not (folder / TABLE_FILE).exists() and _generations(folder):
        raise CorruptStore(
            f"{folder / TABLE_FILE} is missing; run `colmem check --repair` to rebuild it from the "
            "row log"
        )
    table = Table(
        folder,
        threads=options.threads,
        memory_limit=options.memory_limit,
        read_only=options.read_only and (folder / TABLE_FILE).exists(),
    )
    try:
        generation = table.state()[0]
        recorded = settings.embedder(generation)
        embedder, problem = _resolve(recorded, wanted, folder)
        ranking = RankingSettings.from_dict(settings.ranking)
        if not options.read_only:
            remove_other_generations(folder, generation)
        store = _store(folder, generation, recorded.dim, embedder, table, options)
        search_passages(store, embedder, ranking)
    except BaseException:
        table.close()
        raise

    def release() -> None:
        table.close()
        lock.release()

    return Opened(store, settings, embedder, problem, ranking, release)


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        fsync_folder(folder.parent)
    except OSError as error:
        raise ConfigError(
            f"{folder} cannot be created: {error.strerror}; check the path"
        ) from error


def remove_other_generations(folder: Path, generation: int) -> None:
    """Remove the files of generations that are not, or no longer, the table's."""
    for part in _PARTS:
        for path in (folder / part).glob("*"):
            if path.name != str(generation):
                shutil.rmtree(path)


def new_store(
    folder: Path | None, generation: int, dim: int, embedder: Embedder | None, options: Options
) -> Store:
    """An empty generation, without the table until it takes it."""
    return _store(folder, generation, dim, embedder, None, options)


def search_passages(store: Store, embedder: Embedder | None, ranking: RankingSettings) -> None:
    """Have a store's long items searched by their passages, where its settings say so."""
    if embedder is None or not ranking.passages:
        return
    folder = store.folder
    if folder is not None:
        folder = folder / "vectors" / str(store.generation) / "passages"
    store.long_items = LongItems(store, folder, lambda texts: embed_texts(embedder, texts).vectors)


def _store(
    folder: Path | None,
    generation: int,
    dim: int,
    embedder: Embedder | None,
    table: Table | None,
    options: Options,
) -> Store:
    pieces_of, n_piece_ids = pieces_function(embedder)
    return Store(
        folder,
        generation,
        dim,
        table=table,
        pieces_of=pieces_of,
        n_piece_ids=n_piece_ids,
        read_only=options.read_only,
        threads=options.threads or THREADS,
        exact=options.exact,
    )


def _new_settings(embedder: Embedder) -> Settings:
    return Settings(
        colmem=__version__,
        analyser=ANALYSER_VERSION,
        ranking=RankingSettings().to_dict(),
        generations={"0": EmbedderRecord(embedder.key, embedder.dim)},
    )


def _wanted(embedder: Embedder | str | None) -> Embedder | None:
    return embedder_of(embedder) if isinstance(embedder, str) else embedder


def _resolve(
    recorded: EmbedderRecord, wanted: Embedder | None, folder: Path
) -> tuple[Embedder | None, str]:
    """The embedder to use with a store; with none at hand, why not."""
    if wanted is not None:
        if (wanted.key, wanted.dim) != (recorded.key, recorded.dim):
            raise ConfigError(
                f"store {folder} holds embeddings of {recorded.key} ({recorded.dim} dimensions), "
                f"it was opened with {wanted.key} ({wanted.dim}); open it with the recorded "
                f"embedder and call engine.reembed({wanted.key!r}) to change it"
            )
        return wanted, ""
    try:
        embedder = embedder_of(recorded.key)
    except ColmemError as error:
        return None, (
            f"the store's embedder {recorded.key} is not available ({error.message}); pass it as "
            "embedder= or change it with engine.reembed(...)"
        )
    if embedder.dim != recorded.dim:
        raise ConfigError(
            f"store {folder} holds embeddings of {recorded.dim} dimensions, {recorded.key} now "
            f"makes {embedder.dim}; pass the embedder the store was made with"
        )
    return embedder, ""


def _generations(folder: Path) -> list[int]:
    names = {p.name for part in _PARTS for p in (folder / part).glob("*")}
    return sorted(int(name) for name in names if re.fullmatch(r"\d+", name))
