"""Reads the golden files of the contract, counting their lines."""

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from colmem.contract import ColmemError

FOLDER = Path(__file__).parents[1] / "golden" / "contract"

Case = dict[str, Any]


def golden_names() -> set[str]:
    return {path.name.split(".")[0] for path in FOLDER.iterdir() if ".jsonl" in path.name}


def golden_cases(name: str) -> list[Case]:
    plain = FOLDER / f"{name}.jsonl"
    packed = FOLDER / f"{name}.jsonl.gz"
    data = plain.read_bytes() if plain.exists() else gzip.decompress(packed.read_bytes())
    # Decoded strings hold other line separators, so lines end at \n only.
    return [json.loads(line) for line in data.split(b"\n") if line]


def error_form(error: ColmemError) -> Case:
    return {
        "variant": error.variant,
        "message": error.message,
        "display": str(error),
        "transient": error.is_transient,
    }


def outcome(call: Callable[[], object]) -> object:
    """A golden result: "ok", or the error a call raises."""
    try:
        call()
    except ColmemError as error:
        return {"error": error_form(error)}
    return "ok"
