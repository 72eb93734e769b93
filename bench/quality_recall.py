"""Quality of extractive answers: evidence quoted, and questions without an answer refused.

    python bench/quality_recall.py FOLDER FOLDER... [--questions 150] [--out DIR]

Answerable: a set's own questions. Unanswerable: the other sets' questions asked of it, and LoCoMo's
adversarial category, reported apart. Evidence is the judged document's text (sets of short texts)
or the known answer (sets that have one); it is looked for in the answer, and in the texts of the
first hit and of all top hits, cut to the answer's length. Writes quality_recall.md.
"""

from __future__ import annotations

import argparse
import random
import statistics
from pathlib import Path
from typing import Any

import colmem
from colmem.contract import FetchRequest, RecallRequest
from quality import table
from quality_sets import ADVERSARIAL, JudgedSet, Question, read_set

SEED = 2026
SHORT_CHARS = 240


def evidence_of(question: Question, texts: dict[str, str]) -> list[str]:
    """Texts one of which a good answer quotes; none when the question has no short evidence."""
    if question.answer and any(question.answer in texts[id] for id in question.relevance):
        return [question.answer]
    texts_judged = [texts[id] for id in question.relevance]
    return [text for text in texts_judged if len(text) <= SHORT_CHARS]


def run(judged: JudgedSet, others: list[JudgedSet], n: int) -> dict[str, Any]:
    chosen = random.Random(SEED)
    own = [q for q in judged.questions if q.category != ADVERSARIAL]
    own = chosen.sample(own, min(n, len(own)))
    texts = {document["id"]: document["text"] for document in judged.documents}
    row: dict[str, Any] = {"set": judged.name, "questions": len(own)}
    with colmem.open(":memory:") as engine:
        engine.ingest(judged.items())

        def ask(text: str, filter: Any) -> Any:
            return engine.recall(RecallRequest(question=text, filter=filter, limit=10))

        answered, quoted, in_top, in_first, chars = 0, [], [], [], []
        for question in own:
            answer = ask(question.text, question.filter)
            answered += bool(answer.citations)
            evidence = evidence_of(question, texts)
            if evidence:
                request = FetchRequest(
                    query=question.text, mode="hybrid", filter=question.filter, limit=10
                )
                hits = engine.fetch(request).hits
                size = max(len(answer.answer), 1)
                top = "\n".join(hit.text for hit in hits)[:size]
                first = hits[0].text[:size]
                quoted.append(any(text in answer.answer for text in evidence))
                in_top.append(any(text in top for text in evidence))
                in_first.append(any(text in first for text in evidence))
                chars.append(len(answer.answer))
        foreign = [q for other in others for q in chosen.sample(other.questions, n // len(others))]
        refused = sum(not ask(q.text, chosen.choice(own).filter).citations for q in foreign)
        adversarial = [q for q in judged.questions if q.category == ADVERSARIAL][:n]
        row |= {
            "answered": round(answered / len(own), 3),
            "foreign questions": len(foreign),
            "refusal recall": round(refused / len(foreign), 3),
            "refusal precision": round(refused / max(refused + len(own) - answered, 1), 3),
        }
        if quoted:
            row["evidence in answer"] = round(statistics.fmean(quoted), 3)
            row["in the top citation"] = round(statistics.fmean(in_first), 3)
            row["evidence in top hits"] = round(statistics.fmean(in_top), 3)
            row["mean chars"] = round(statistics.fmean(chars))
        if adversarial:
            n_refused = sum(not ask(q.text, q.filter).citations for q in adversarial)
            row["adversarial refused"] = round(n_refused / len(adversarial), 3)
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--questions", type=int, default=150)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    options = parser.parse_args()
    sets = [read_set(folder) for folder in options.folders]
    rows = [run(s, [other for other in sets if other is not s], options.questions) for s in sets]
    options.out.mkdir(parents=True, exist_ok=True)
    text = "# Extractive answers\n\nMade by `bench/quality_recall.py`.\n\n" + table(rows)
    (options.out / "quality_recall.md").write_text(text)
    print(text)


if __name__ == "__main__":
    main()
