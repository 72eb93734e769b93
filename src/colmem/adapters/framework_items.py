"""The part of an engine that a framework works on: where it writes, how far it reads, its own ids.

Works on any engine of the contract. What a framework wrote has it as its source's id, so that
clearing removes nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from colmem import (
    FetchMode,
    Hit,
    MemoryEngine,
    MemoryMeta,
    MetaFilter,
    Reach,
    SourceKind,
    SourceRef,
    StoreItem,
    Unsupported,
    is_blank,
)
from colmem.adapters import foreign

BATCH_ITEMS: Final = 100  # of one atomic write
PAGE_ITEMS: Final = 1_000
IDS_PER_GET: Final = 200


class FrameworkItems:
    """Items as one framework stores and reads them.

    framework : its name; base : metadata of everything it writes; filter : confines all it reads,
    by default to what is seen from the base's namespace when that is not the root.
    """

    def __init__(
        self,
        engine: MemoryEngine,
        framework: str,
        base: MemoryMeta | None = None,
        filter: MetaFilter | None = None,
    ) -> None:
        base = base or MemoryMeta()
        if filter is None:
            at = base.namespace
            filter = MetaFilter() if at.is_root else MetaFilter(reach=Reach.of(at))
        self.engine = engine
        self.framework = framework
        self.filter = filter
        self._base = base.replace(source=SourceRef(SourceKind.IMPORT, framework))

    def meta(
        self, metadata: Mapping[str, Any], id: str | None, tags: Sequence[str] = ()
    ) -> MemoryMeta:
        """Metadata of an item to be written."""
        own = [self.tag("id", id)] if id is not None else []
        return foreign.with_metadata(self._base, metadata, [*own, *tags])

    def id_of(self, hit: Hit) -> str:
        """The framework's id of an item, else the store's."""
        return foreign.named_value(hit.meta, self.framework, "id") or hit.id

    def metadata_of(self, hit: Hit) -> dict[str, Any]:
        """Free metadata of an item."""
        return foreign.metadata_of(hit, self.framework)

    def confined(self, wanted: MetaFilter | Mapping[str, Any] | None) -> MetaFilter:
        """A filter within what is read here."""
        return foreign.both(self.filter, foreign.filter_of(wanted))

    def put(self, items: Sequence[tuple[str | None, StoreItem]]) -> list[str]:
        """Store items under the ids that the framework gave them, replacing what has those ids.

        Returns their ids in order: the framework's, else the store's. A batch of 100 is atomic;
        what is replaced goes after the new is durable.
        """
        last = {id: place for place, (id, _) in enumerate(items) if id is not None}
        kept = [place for place, (id, _) in enumerate(items) if id is None or last[id] == place]
        ids = [id or "" for id, _ in items]
        for start in range(0, len(kept), BATCH_ITEMS):
            places = kept[start : start + BATCH_ITEMS]
            receipts = self.engine.store_many([items[place][1] for place in places])
            for place, receipt in zip(places, receipts, strict=True):
                ids[place] = ids[place] or receipt.id
            named = [id for place in places if (id := items[place][0]) is not None]
            self._forget_others(named, {receipt.id for receipt in receipts})
        return ids

    def get(self, ids: Sequence[str]) -> list[Hit]:
        """Readable items by the framework's id or the store's, in order, each once."""
        wanted = [*dict.fromkeys(ids)]
        found: dict[str, Hit] = {}
        for start in range(0, len(wanted), IDS_PER_GET):
            part = wanted[start : start + IDS_PER_GET]
            found |= {self.id_of(hit): hit for hit in self.tagged("id", part)}
            rest = [id for id in part if id not in found and not is_blank(id)]
            if rest:
                held = self.engine.get(ids=rest, reach=self.filter.reach)
                found |= {hit.id: hit for hit in held if self._is_readable(hit)}
        return [found[id] for id in wanted if id in found]

    def tag(self, name: str, value: str) -> str:
        """The tag by which the framework finds what is its own."""
        return foreign.named_tag(self.framework, name, value)

    def tagged(self, name: str, values: Sequence[str]) -> list[Hit]:
        """Readable items that the framework tagged with one of the values."""
        if not values:
            return []
        tags = [self.tag(name, value) for value in values]
        held = self.list(MetaFilter(reach=self.filter.reach, tags_any=tags))
        return [hit for hit in held if self._is_readable(hit)]

    def forget(self, hits: Sequence[Hit]) -> None:
        """Forget items that were read."""
        if hits:
            self.engine.forget(ids=[hit.id for hit in hits])

    def clear(self) -> None:
        """Forget everything readable that the framework wrote."""
        own = MetaFilter(sources=[SourceKind.IMPORT], source_id=self.framework)
        self.engine.forget(filter=foreign.both(self.filter, own))

    def list(self, filter: MetaFilter) -> Iterator[Hit]:
        """Every admitted item in order of storing, read in pages; the filter as it is."""
        cursor: str | None = None
        while True:
            page = self.engine.list(filter=filter, limit=PAGE_ITEMS, cursor=cursor)
            yield from page.items
            cursor = page.next_cursor
            if cursor is None:
                return

    def fetch(self, query: str, mode: FetchMode | str, k: int, filter: MetaFilter) -> Sequence[Hit]:
        """The k best for a query; the filter as it is."""
        return self.engine.fetch(query=query, mode=mode, limit=k, filter=filter).hits

    def nearest(self, vector: Sequence[float], k: int, filter: MetaFilter) -> Sequence[Hit]:
        """The k nearest to an embedding; the filter as it is.

        Raises
        ------
        Unsupported
            When the engine takes queries in words only.
        """
        search = getattr(self.engine, "nearest", None)
        if search is None:
            name = self.engine.descriptor().id
            raise Unsupported(
                f"engine `{name}` is not searched by vector here; search by text, or open the "
                "store in this process"
            )
        hits: Sequence[Hit] = search(vector, filter=filter, limit=k)
        return hits

    def _is_readable(self, hit: Hit) -> bool:
        return self.filter.matches(hit.kind, hit.meta)

    def _forget_others(self, ids: Sequence[str], kept: set[str]) -> None:
        """Forget what has one of the framework's ids where it writes, except the kept ones."""
        if ids:
            here = Reach.exact(self._base.namespace)
            tags = [self.tag("id", id) for id in ids]
            held = self.list(MetaFilter(reach=here, tags_any=tags))
            self.forget([hit for hit in held if hit.id not in kept])
