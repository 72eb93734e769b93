"""``model2vec:<folder>``: a saved model2vec (StaticModel) folder.

A text's vector is the weighted mean of the rows of its known tokens, normalised. Files:
model.safetensors, tokenizer.json and, when there, config.json. Needs the package tokenizers.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from colmem.contract.errors import ConfigError
from colmem.embed.folders import (
    encode_batches,
    load_tokenizer,
    model_file,
    normalise,
    read_json,
)

PIECES_MAX = 512  # as model2vec's own encode cuts
_BATCH = 1024
_DTYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4", "I8": "i1"}


class Model2VecEmbedder:
    """The embedder of one folder; ``key`` names the folder, ``dim`` is that of its table."""

    def __init__(self, key: str) -> None:
        self.key = key
        path = model_file(key, "model.safetensors")
        self._tokenizer = load_tokenizer(key, model_file(key, "tokenizer.json"), PIECES_MAX)
        tensors = read_safetensors(path)
        if "embeddings" not in tensors or tensors["embeddings"].ndim != 2:
            raise ConfigError(
                f"embedder {key!r}: {path} has no matrix named embeddings; "
                "name the folder of a model2vec model"
            )
        self._rows = tensors["embeddings"].astype(np.float32)
        self._weights = tensors.get("weights")
        self._mapping = tensors.get("mapping")
        config = read_json(path.parent / "config.json")
        unknown = config.get("unk_token", "[UNK]")
        self._unknown = self._tokenizer.token_to_id(unknown)
        self.dim = int(self._rows.shape[1])

    def embed(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """float32 (n, dim), rows L2-normalised; zero for a text without known tokens."""
        sums = np.zeros((len(texts), self.dim), np.float32)
        row = 0
        for batch in encode_batches(self._tokenizer, texts, _BATCH):
            for ids in batch:
                known = np.array([i for i in ids if i != self._unknown], np.int64)
                rows = self._rows[known if self._mapping is None else self._mapping[known]]
                if self._weights is not None:
                    rows = rows * self._weights[known].astype(np.float32)[:, None]
                # The mean has the direction of the sum, and only the direction is kept.
                sums[row] = rows.sum(axis=0)
                row += 1
        return normalise(sums)


def read_safetensors(path: Path) -> dict[str, npt.NDArray[Any]]:
    """Arrays of a safetensors file: header length (uint64), JSON header, raw bytes.

    Raises
    ------
    ConfigError
        When the file is damaged or holds a type that is not plain numbers.
    """
    data = path.read_bytes()
    try:
        size = int.from_bytes(data[:8], "little")
        header = msgspec.json.decode(data[8 : 8 + size], type=dict[str, dict[str, Any]])
        header.pop("__metadata__", None)
        body = memoryview(data)[8 + size :]
        tensors: dict[str, npt.NDArray[Any]] = {}
        for name, entry in header.items():
            first, last = entry["data_offsets"]
            flat = np.frombuffer(body[first:last], _DTYPES[entry["dtype"]])
            tensors[name] = flat.reshape(entry["shape"])
    except (msgspec.DecodeError, KeyError, TypeError, ValueError) as error:
        raise ConfigError(
            f"{path} is not a readable safetensors file ({type(error).__name__}: {error}); "
            "copy or download the model again"
        ) from error
    return tensors
