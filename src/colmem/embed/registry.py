"""Embedders by key: the built-in ones, the families made from a folder or an address, a user's own.

Knows how to find and cache embedders, not how they work: their files are imported when first asked
for. One key gives one embedder per process.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from colmem.contract.errors import ConfigError

if TYPE_CHECKING:
    from colmem.contract.engine import Embedder

DEFAULT_KEY = "static-s256"

_lock = threading.Lock()
_made: dict[str, Embedder] = {}
_factories: dict[str, Callable[[], Embedder]] = {}


def _make_static() -> Embedder:
    from colmem.embed.static import StaticEmbedder  # noqa: PLC0415 - numpy only when needed

    return StaticEmbedder()


def _make_hash() -> Embedder:
    from colmem.embed.hashed import HashEmbedder  # noqa: PLC0415 - numpy only when needed

    return HashEmbedder()


def _make_minilm() -> Embedder:
    from colmem.embed.onnx import MiniLMEmbedder  # noqa: PLC0415 - numpy only when needed

    return MiniLMEmbedder()


_BUILT_IN: dict[str, Callable[[], Embedder]] = {
    DEFAULT_KEY: _make_static,
    "hotmem-hash-v1": _make_hash,
    "minilm": _make_minilm,
}


def _make_model2vec(key: str) -> Embedder:
    from colmem.embed.model2vec import Model2VecEmbedder  # noqa: PLC0415 - numpy only when needed

    return Model2VecEmbedder(key)


def _make_onnx(key: str) -> Embedder:
    from colmem.embed.onnx import OnnxEmbedder  # noqa: PLC0415 - numpy only when needed

    return OnnxEmbedder(key)


def _make_endpoint(key: str) -> Embedder:
    from colmem.embed.endpoint import EndpointEmbedder  # noqa: PLC0415 - numpy only when needed

    return EndpointEmbedder(key)


# What follows the colon: a folder, a folder, an address with "#" and the model's name.
_FAMILIES: dict[str, Callable[[str], Embedder]] = {
    "model2vec": _make_model2vec,
    "onnx": _make_onnx,
    "openai": _make_endpoint,
}
_FORMS = ("model2vec:<folder>", "onnx:<folder>", "openai:<base_url>#<model>")


def register(key: str, factory: Callable[[], Embedder]) -> None:
    """Make ``embedder(key)`` return what ``factory`` makes, from its first use on.

    Raises
    ------
    ConfigError
        When the key is empty, or one that colmem itself answers.
    """
    if not key or key in _BUILT_IN or _family(key) is not None:
        raise ConfigError(
            f"embedder key {key!r} cannot be registered: it is empty or built in; "
            "choose another key"
        )
    with _lock:
        _factories[key] = factory
        _made.pop(key, None)


def _family(key: str) -> Callable[[str], Embedder] | None:
    prefix, colon, _ = key.partition(":")
    return _FAMILIES.get(prefix) if colon else None


def known_keys() -> list[str]:
    """Every key of a built-in or registered embedder, built-in ones first."""
    with _lock:
        return [*_BUILT_IN, *sorted(_factories)]


def embedder(key: str = DEFAULT_KEY) -> Embedder:
    """Return the embedder of a key; the same object for the same key.

    Raises
    ------
    ConfigError
        When no embedder has this key, what a factory made carries another one, or the folder or
        address in the key is not that of a model.
    MissingExtra
        When the package that a folder needs is not installed.
    """
    with _lock:
        if key in _made:
            return _made[key]
        factory = _BUILT_IN.get(key) or _factories.get(key)
    family = _family(key)
    if factory is not None:
        made = factory()
    elif family is not None:
        made = family(key)
    else:
        raise ConfigError(
            f"no embedder has the key {key!r}; known keys: {', '.join([*known_keys(), *_FORMS])}. "
            "Choose one of them, or add your own with colmem.embed.register(key, factory)"
        )
    if made.key != key:
        raise ConfigError(
            f"the embedder registered as {key!r} calls itself {made.key!r}; "
            "register it under its own key"
        )
    with _lock:
        return _made.setdefault(key, made)
