"""The only place with Numba options and the cache directory.

Every kernel is compiled by :func:`kernel` for one explicit signature: serial, ``nogil``, cached on
disk under a folder named by a digest of its source file and of every kernel file that one imports,
so that an edit to any of them never serves stale machine code. Without a writable folder kernels
are compiled uncached.
"""

from __future__ import annotations

import hashlib
import logging
import os
import re
import threading
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
import platformdirs

F = TypeVar("F", bound=Callable[..., Any])

_config: Any = numba.config
_LOG = logging.getLogger("colmem.kernels")

# Reductions are several times slower without reassociation. Never nnan/ninf: a NaN must survive.
FASTMATH = frozenset({"reassoc", "contract", "nsz", "arcp"})


_IMPORT = re.compile(rb"^from colmem_kernels(?:\.(\w+))? import (.*)$", re.MULTILINE)


def _sources(path: Path, seen: dict[Path, bytes]) -> dict[Path, bytes]:
    """A kernel file and those it imports, with their bytes."""
    if path not in seen and path.is_file():
        seen[path] = path.read_bytes()
        for module, names in _IMPORT.findall(seen[path]):
            for name in [module] if module else re.findall(rb"\w+", names):
                _sources(path.with_name(f"{name.decode()}.py"), seen)
    return seen


@cache
def cache_dir(source: Path) -> str | None:
    """The folder for the machine code of one kernel file, or None when it cannot be written to."""
    digest = hashlib.sha256(numba.__version__.encode() + Path(__file__).read_bytes())
    for _, data in sorted(_sources(source, {}).items()):
        digest.update(data)
    for name in ("COLMEM_CACHE_DIR", "NUMBA_CACHE_DIR"):
        if os.environ.get(name):
            root = Path(os.environ[name])
            break
    else:
        root = Path(platformdirs.user_cache_dir("colmem"))
    folder = root / "kernels" / f"{source.stem}-{digest.hexdigest()[:16]}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return None
    return str(folder) if os.access(folder, os.W_OK) else None


class Kernel:
    """A compiled function, made (or loaded from the cache) when it is first called or needed.

    A command uses a few of some sixty kernels, and loading one takes 15 ms.
    """

    def __init__(self, dispatcher: Any, signatures: list[Any], folder: str | None) -> None:
        self._dispatcher = dispatcher
        self._folder = folder
        self._signatures = signatures
        self._call = self._first_call
        self.__doc__ = dispatcher.__doc__
        self.__name__ = dispatcher.__name__
        self.__wrapped__ = dispatcher.py_func

    def __call__(self, *args: Any) -> Any:
        """Call the compiled function."""
        return self._call(*args)

    def compiled(self) -> Any:
        """The function as Numba made it, for its one signature."""
        with _COMPILING:
            if self._signatures:
                if not self.is_cached():
                    _announce()
                for signature in self._signatures:
                    self._dispatcher.compile(signature)
                self._dispatcher.disable_compile()
                self._signatures = []
                self._call = self._dispatcher
        return self._dispatcher

    def is_ready(self) -> bool:
        """Whether it can be called without being compiled first."""
        return not self._signatures or self.is_cached()

    def is_cached(self) -> bool:
        """Whether its machine code lies in the cache."""
        function = self._dispatcher.py_func
        stem = f"{function.__module__.rpartition('.')[2]}.{function.__qualname__}-"
        folder = self._folder
        return folder is not None and any(
            name.startswith(stem) and name.endswith(".nbi")
            for _, _, names in os.walk(folder)
            for name in names
        )

    @property
    def _numba_type_(self) -> Any:
        # Asked for where one kernel calls another.
        return numba.typeof(self.compiled())  # type: ignore[no-untyped-call]

    def _first_call(self, *args: Any) -> Any:
        return self.compiled()(*args)


_COMPILING = threading.RLock()


@cache
def _announce() -> None:
    _LOG.info("compiling native code of what is used for the first time here; it is kept")


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
        signatures = signature if isinstance(signature, list) else [signature]
        folder = cache_dir(Path(function.__code__.co_filename))
        before = _config.CACHE_DIR
        try:
            if folder is not None:
                _config.CACHE_DIR = folder
                options["cache"] = True
            return cast(F, Kernel(numba.njit(**options)(function), signatures, folder))
        finally:
            _config.CACHE_DIR = before

    return decorate
