"""tantivy by itself: the keyword search that colmem builds on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import tantivy

from yardstick.contender import Contender
from yardstick.metadata import SINGLE_VALUED, Filter
from yardstick.vectors import Vectors
from yardstick.workload import Batch

_MUST, _SHOULD = tantivy.Occur.Must, tantivy.Occur.Should
_HEAP_BYTES, _THREADS = 256 << 20, 2


class Tantivy(Contender):
    packages = ("tantivy",)
    imports = "tantivy"
    setup = "English stemmer, texts indexed and not stored, a commit makes durable; row numbers"
    modes = frozenset({"keyword"})
    can: ClassVar[frozenset[str]] = frozenset(
        {"explore", "store", "store_many", "threads", "forget", "compact"}
    )

    def open(self) -> None:
        builder = tantivy.SchemaBuilder()
        builder.add_text_field("text", tokenizer_name="en_stem", index_option="freq")
        builder.add_unsigned_field("row", fast=True)
        builder.add_unsigned_field("observed", indexed=True, fast=True)
        for name in (*SINGLE_VALUED, "above", "tag"):
            builder.add_text_field(name, tokenizer_name="raw", index_option="basic", fast=True)
        self._schema = builder.build()
        self.folder.mkdir(exist_ok=True)
        self._index = tantivy.Index(self._schema, path=str(self.folder))
        self._index.reload()
        self._searcher = self._index.searcher()
        self._held: tantivy.IndexWriter | None = None
        stem = tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.simple())
        stem = stem.filter(tantivy.Filter.lowercase()).filter(tantivy.Filter.stemmer("english"))
        self._analyser = stem.build()

    def close(self) -> None:
        self._held = None

    def add(self, batch: Batch) -> None:
        columns = {name: batch.values(name) for name in SINGLE_VALUED}
        rest = zip(batch.rows, batch.texts, batch.tags(), batch.observed(), strict=True)
        for i, (row, text, tags, observed) in enumerate(rest):
            document = tantivy.Document(text=text, tag=tags)
            document.add_unsigned("row", row)
            for name, values in columns.items():
                value = values[i]
                if value is not None:
                    document.add_text(name, value)
            for node in _nodes(columns["namespace"][i]):
                document.add_text("above", node)
            if observed is not None:
                document.add_unsigned("observed", observed)
            self._writer.add_document(document)

    def finish(self, n: int) -> None:
        self._writer.commit()
        self._writer.wait_merging_threads()
        self._held = None
        self._see()
        assert self._searcher.num_docs == n

    def search(self, mode: str, text: str, vector: Vectors, k: int, filter: Any = None) -> Any:
        schema = self._schema
        words = [
            (_SHOULD, tantivy.Query.term_query(schema, "text", term, "freq"))
            for term in self._analyser.analyze(text)
        ]
        query = tantivy.Query.boolean_query(words)
        if filter is not None:
            query = tantivy.Query.boolean_query([(_MUST, query), (_MUST, filter)])
        searcher = self._searcher
        hits = searcher.search(query, k, count=False).hits
        return searcher.fast_field_values("row", [address for _, address in hits])

    def prepare(self, filter: Filter) -> Any:
        if filter.name == "none":
            return None
        schema, query = self._schema, tantivy.Query
        if filter.field is not None:
            return query.const_score_query(query.term_query(schema, filter.field, filter.value), 0)
        if filter.reach is not None:
            below = query.term_query(schema, "above", filter.reach)
            above = query.term_set_query(schema, "namespace", filter.ancestors())
            either = query.boolean_query([(_SHOULD, below), (_SHOULD, above)])
            return query.const_score_query(either, 0)
        return query.const_score_query(
            query.range_query(
                schema,
                "observed",
                tantivy.FieldType.Unsigned,
                filter.after_s,
                filter.before_s,
                include_upper=False,
            ),
            0,
        )

    def explore(self, facet: str, filter: Any, limit: int) -> Mapping[str, int]:
        # segment_size: exact counts need every segment's values.
        terms = {"field": facet, "size": limit, "segment_size": 65_000}
        wanted = filter or tantivy.Query.all_query()
        found = self._searcher.aggregate(wanted, {"by": {"terms": terms}})
        return {bucket["key"]: bucket["doc_count"] for bucket in found["by"]["buckets"]}

    def store(self, batch: Batch) -> None:
        self.add(batch)
        self._writer.commit()
        self._see()

    def forget(self, filter: Any) -> None:
        self._writer.delete_documents_by_query(filter)
        self._writer.commit()
        self._see()

    def compact(self) -> None:
        self._writer.commit()
        self._writer.wait_merging_threads()
        self._held = None
        self._see()

    @property
    def _writer(self) -> tantivy.IndexWriter:
        if self._held is None:
            self._held = self._index.writer(_HEAP_BYTES, _THREADS)
        return self._held

    def _see(self) -> None:
        self._index.reload()
        self._searcher = self._index.searcher()


def _nodes(namespace: str | None) -> list[str]:
    """A namespace and those above it, the root aside."""
    parts = (namespace or "root").split("/")
    return ["/".join(parts[: depth + 1]) for depth in range(len(parts))]
