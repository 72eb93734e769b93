"""``onnx:<folder>``: a sentence-transformers folder with an ONNX model.

Token vectors are pooled as 1_Pooling/config.json says (mean when it says nothing), then normalised.
Files: model.onnx or onnx/model.onnx, tokenizer.json. Needs the packages onnxruntime and tokenizers.
"""

from __future__ import annotations

from collections.abc import Sequence
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

_BATCH = 32
_PIECES_MAX = 512  # when sentence_bert_config.json gives no max_seq_length


class OnnxEmbedder:
    """The embedder of one folder; ``key`` names the folder, ``dim`` is the model's."""

    def __init__(self, key: str) -> None:
        self.key = key
        path = model_file(key, "model.onnx", "onnx/model.onnx")
        folder = model_file(key, "tokenizer.json").parent
        onnxruntime = import_extra(key, "onnxruntime")
        settings = read_json(folder / "sentence_bert_config.json")
        pieces_max = int(settings.get("max_seq_length") or _PIECES_MAX)
        self._tokenizer = load_tokenizer(key, folder / "tokenizer.json", pieces_max)
        pooling = read_json(folder / "1_Pooling" / "config.json")
        self._takes_first = bool(pooling.get("pooling_mode_cls_token", False))
        try:
            self._session = onnxruntime.InferenceSession(
                str(path), providers=["CPUExecutionProvider"]
            )
        except Exception as error:  # its classes are not public
            raise ConfigError(
                f"embedder {key!r}: onnxruntime cannot load {path} ({error}); save the model again"
            ) from error
        self._inputs = [entry.name for entry in self._session.get_inputs()]
        unknown = set(self._inputs) - {"input_ids", "attention_mask", "token_type_ids"}
        if unknown or "input_ids" not in self._inputs:
            raise ConfigError(
                f"embedder {key!r}: {path} takes the inputs {', '.join(self._inputs)}; expected "
                "input_ids and at most attention_mask and token_type_ids"
            )
        self.dim = int(self._run([[0]]).shape[1])

    def embed(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """float32 (n, dim), rows L2-normalised; zero for a text without tokens."""
        # Texts of like length share a batch, which spares padding; each goes back to its row.
        order = sorted(range(len(texts)), key=lambda row: len(texts[row]))
        vectors = np.zeros((len(texts), self.dim), np.float32)
        done = 0
        for batch in encode_batches(self._tokenizer, [texts[row] for row in order], _BATCH):
            if any(batch):
                vectors[order[done : done + len(batch)]] = self._run(batch)
            done += len(batch)
        return normalise(vectors)

    def _run(self, batch: list[list[int]]) -> npt.NDArray[np.float32]:
        """Pooled vectors of a batch of token ids: float32 (n, dim)."""
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
            return values[:, 0] * mask[:, :1]
        counts = np.maximum(mask.sum(axis=1, keepdims=True), 1)
        pooled: npt.NDArray[np.float32] = (values * mask[:, :, None]).sum(axis=1) / counts
        return pooled
