"""Judged corpora in BEIR's layout, read from a folder, as items and questions."""

from __future__ import annotations

import gzip
import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import colmem
from colmem.contract import MemoryMeta, MetaFilter, Namespace, Reach, SourceKind, SourceRef

ADVERSARIAL = 5  # LoCoMo's category of questions that the conversation does not answer


@dataclass(frozen=True, slots=True)
class Question:
    id: str
    text: str
    filter: MetaFilter
    scope: str | None
    relevance: dict[str, int]
    category: int | None
    answer: str | None


@dataclass(frozen=True, slots=True)
class JudgedSet:
    name: str
    documents: list[dict[str, Any]]
    questions: list[Question]
    is_dialogue: bool

    def items(self) -> list[Any]:
        """One item a document; its id stands in ``file_path``."""
        return [self._item(document) for document in self.documents]

    def _item(self, document: dict[str, Any]) -> Any:
        text = document["text"]
        if document.get("title"):
            text = f"{document['title']}. {text}"
        fields: dict[str, Any] = {"file_path": path_of(document["id"])}
        scope = document.get("scope")
        if scope:
            fields["namespace"] = place(scope)
        session = document.get("meta", {}).get("session")
        if session is not None:
            fields["thread_id"] = f"{scope}/{session}"
            fields["source"] = SourceRef(SourceKind.CONVERSATION)
        return colmem.document(text, meta=MemoryMeta(**fields))


def path_of(document_id: str) -> str:
    return f"/{document_id}"


def place(scope: str) -> Namespace:
    return Namespace.parse("project:" + re.sub(r"[^A-Za-z0-9_-]", "-", scope))


def read_set(folder: Path) -> JudgedSet:
    """Read a set; questions without a judgement are left out."""
    relevance: dict[str, dict[str, int]] = {}
    for line in (folder / "qrels.tsv").read_text().splitlines()[1:]:
        question, document, grade = line.split("\t")
        relevance.setdefault(question, {})[document] = int(grade)
    documents = _lines(folder / "corpus.jsonl.gz")
    questions = [
        Question(
            line["id"],
            line["text"],
            MetaFilter(reach=Reach.exact(place(line["scope"])))
            if line.get("scope")
            else MetaFilter(),
            line.get("scope"),
            relevance[line["id"]],
            line.get("meta", {}).get("category"),
            str(line.get("meta", {}).get("answer") or "") or None,
        )
        for line in _lines(folder / "queries.jsonl.gz")
        if line["id"] in relevance
    ]
    is_dialogue = "session" in documents[0].get("meta", {})
    return JudgedSet(folder.name, documents, questions, is_dialogue)


def _lines(path: Path) -> list[dict[str, Any]]:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]
