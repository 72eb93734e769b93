"""Embedders by key: built-in, registered, unknown; and what importing costs."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from colmem import embed
from colmem.contract.errors import ConfigError
from colmem.embed import registry


class Constant:
    def __init__(self, key):
        self.key = key
        self.dim = 2

    def embed(self, texts):
        return np.tile(np.float32([1, 0]), (len(texts), 1))


@pytest.fixture(autouse=True)
def _restore(monkeypatch):
    monkeypatch.setattr(registry, "_factories", {})
    monkeypatch.setattr(registry, "_made", {})


@pytest.mark.parametrize(("key", "dim"), [("static-s256", 256), ("hotmem-hash-v1", 64)])
def test_built_in_embedders(key, dim):
    found = embed.embedder(key)
    assert (found.key, found.dim) == (key, dim)
    assert embed.embedder(key) is found
    vectors = found.embed(["who owns a value"])
    assert vectors.shape == (1, dim)
    assert vectors.dtype == np.float32


def test_the_default_is_the_static_table():
    assert embed.embedder().key == embed.DEFAULT_KEY == "static-s256"


@pytest.mark.parametrize("key", ["", "static-s512", "Static-s256", "hotmem-hash-v2"])
def test_an_unknown_key_names_the_known_ones(key):
    embed.register("mine", lambda: Constant("mine"))
    with pytest.raises(ConfigError) as caught:
        embed.embedder(key)
    for known in (repr(key), "static-s256", "hotmem-hash-v1", "mine"):
        assert known in str(caught.value)


def test_a_registered_embedder_is_made_once():
    made = []
    embed.register("mine", lambda: made.append(1) or Constant("mine"))
    assert "mine" in embed.known_keys()
    assert not made
    assert embed.embedder("mine") is embed.embedder("mine")
    assert len(made) == 1


def test_registering_again_replaces():
    embed.register("mine", lambda: Constant("mine"))
    first = embed.embedder("mine")
    embed.register("mine", lambda: Constant("mine"))
    assert embed.embedder("mine") is not first


@pytest.mark.parametrize("key", ["", "static-s256", "hotmem-hash-v1"])
def test_built_in_and_empty_keys_cannot_be_registered(key):
    with pytest.raises(ConfigError, match="cannot be registered"):
        embed.register(key, lambda: Constant(key))


def test_a_factory_must_make_its_own_key():
    embed.register("mine", lambda: Constant("yours"))
    with pytest.raises(ConfigError, match="'mine' calls itself 'yours'"):
        embed.embedder("mine")


def test_import_loads_neither_numba_nor_numpy_nor_a_table():
    code = (
        "import sys, colmem.embed\n"
        "heavy = {'numba', 'numpy', 'colmem_kernels', 'duckdb', 'pyarrow'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
        "e = colmem.embed.embedder()\n"
        "assert e.dim == 256 and 'numba' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
