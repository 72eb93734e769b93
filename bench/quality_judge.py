"""Measures runs by ir-measures; runs in an environment of its own, which holds that package.

Reads from standard input ``{"qrels": {question: {document: grade}}, "run": {question: [document,
...]}, "measures": [name, ...]}``, best first, and prints the means over the questions as JSON.
"""

from __future__ import annotations

import json
import sys

import ir_measures


def main() -> None:
    asked = json.load(sys.stdin)
    # Falling scores keep the order, whatever a judge does with equal ones.
    run = {
        question: {document: -place for place, document in enumerate(documents)}
        for question, documents in asked["run"].items()
    }
    measures = {name: ir_measures.parse_measure(name) for name in asked["measures"]}
    means = ir_measures.calc_aggregate([*measures.values()], asked["qrels"], run)
    print(json.dumps({name: means[measure] for name, measure in measures.items()}))


if __name__ == "__main__":
    main()
