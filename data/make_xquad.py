"""Makes the bundled XQuAD files from BEIR-style folders of the English and Chinese sets.

Run as ``python data/make_xquad.py FOLDER`` where FOLDER holds ``xquad-en`` and ``xquad-zh``, each
with corpus.jsonl.gz, queries.jsonl.gz and qrels.tsv. The same input gives the same bytes.
"""

from __future__ import annotations

import gzip
import json
import sys
from pathlib import Path

LANGUAGES = ("en", "zh")
PARAGRAPHS_PER_TOPIC = 5
# XQuAD takes five paragraphs of each of 48 Wikipedia articles; the names are ours.
TOPICS = (
    "super-bowl-50",
    "warsaw",
    "normans",
    "nikola-tesla",
    "computational-complexity",
    "teachers",
    "martin-luther",
    "southern-california",
    "sky-television",
    "victoria-australia",
    "huguenots",
    "steam-engine",
    "oxygen",
    "oil-crisis-1973",
    "apollo-program",
    "european-union-law",
    "amazon-rainforest",
    "ctenophora",
    "fresno",
    "packet-switching",
    "black-death",
    "geology",
    "newcastle-upon-tyne",
    "victoria-and-albert-museum",
    "american-broadcasting-company",
    "genghis-khan",
    "pharmacy",
    "immune-system",
    "civil-disobedience",
    "construction",
    "private-schools",
    "harvard",
    "jacksonville",
    "economic-inequality",
    "doctor-who",
    "university-of-chicago",
    "yuan-dynasty",
    "kenya",
    "ipcc",
    "chloroplast",
    "prime-numbers",
    "rhine",
    "scottish-parliament",
    "islamism",
    "imperialism",
    "united-methodist-church",
    "french-and-indian-war",
    "force",
)


def main(source: Path) -> None:
    """Write paragraphs and questions of each language beside this file."""
    for language in LANGUAGES:
        folder = source / f"xquad-{language}"
        paragraph_of = {}
        for line in (folder / "qrels.tsv").read_text().splitlines()[1:]:
            question, paragraph, _ = line.split("\t")
            paragraph_of[question] = paragraph
        target = Path(__file__).parent / f"xquad-{language}"
        target.mkdir(exist_ok=True)
        corpus = _read(folder / "corpus.jsonl.gz")
        _write(
            target / "paragraphs.jsonl.gz",
            [_paragraph(language, number, row) for number, row in enumerate(corpus)],
        )
        _write(
            target / "questions.jsonl.gz",
            [
                {
                    "id": row["id"],
                    "text": row["text"],
                    "answer": row["meta"]["answer"],
                    "paragraph": paragraph_of[row["id"]],
                }
                for row in _read(folder / "queries.jsonl.gz")
            ],
        )


def _paragraph(language: str, number: int, row: dict[str, str]) -> dict[str, object]:
    topic = TOPICS[number // PARAGRAPHS_PER_TOPIC]
    return {
        "type": "document",
        "body": {"text": row["text"]},
        "meta": {
            "folder": f"/xquad/{language}/{topic}",
            "language": language,
            "source": {"kind": "import", "id": f"xquad-{row['id']}"},
            "tags": [topic],
        },
    }


def _read(path: Path) -> list[dict[str, object]]:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def _write(path: Path, rows: list[dict[str, object]]) -> None:
    text = "".join(
        json.dumps(row, ensure_ascii=False, separators=(",", ":")) + "\n" for row in rows
    )
    path.write_bytes(gzip.compress(text.encode(), 9, mtime=0))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
