"""The only place with Numba options and the cache directory.

Every kernel is compiled by :func:`kernel` for one explicit signature: serial, ``nogil``, cached on
disk under a folder named by a digest of all kernel sources, so that an edit to any of them never
serves stale machine code. Without a writable folder kernels are compiled uncached.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
import platformdirs

F = TypeVar("F", bound=Callable[..., Any])

# Reductions are several times slower without reassociation. Never nnan/ninf: a NaN must survive.
FASTMATH = frozenset({"reassoc", "contract", "nsz", "arcp"})


def _sources_digest() -> str:
    digest = hashlib.sha256(numba.__version__.encode())
    for path in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def _cache_dir() -> str | None:
    for name in ("COLMEM_CACHE_DIR", "NUMBA_CACHE_DIR"):
        if os.environ.get(name):
            root = Path(os.environ[name])
            break
    else:
        root = Path(platformdirs.user_cache_dir("colmem"))
    folder = root / "kernels" / _sources_digest()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return None
    return str(folder) if os.access(folder, os.W_OK) else None


_CACHE_DIR = _cache_dir()


def kernel(signature: Any, *, fastmath: bool = False, inline: bool = False) -> Callable[[F], F]:
    """Compile a function for one signature (a Numba signature string or type, or a list of them).

    ``fastmath`` allows the flags of :data:`FASTMATH` and no others. Pass ``signature=None`` for a
    helper that is only called from other kernels (compiled with its caller, never cached alone).
    """

    def decorate(function: F) -> F:
        options: dict[str, Any] = {"nogil": True, "fastmath": set(FASTMATH) if fastmath else False}
        if signature is None:
            if inline:
                options["inline"] = "always"
            return cast(F, numba.njit(**options)(function))
        if _CACHE_DIR is None:
            return cast(F, numba.njit(signature, **options)(function))
        before = numba.config.CACHE_DIR
        numba.config.CACHE_DIR = _CACHE_DIR
        try:
            return cast(F, numba.njit(signature, cache=True, **options)(function))
        finally:
            numba.config.CACHE_DIR = before

    return decorate
