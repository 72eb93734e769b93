"""Decides when kernels are worth compiling: a new installation need not wait seconds for little."""

from __future__ import annotations

import threading
from typing import Any


class Gate:
    """Open when kernels are compiled, or once enough was done without them.

    Parameters
    ----------
    kernels
        Each a :class:`colmem_kernels._jit.Kernel`; whoever asks has another way to the same answer.
    after
        How much is done without them, in any unit, before it is worth compiling them.
    in_background
        Whether a thread compiles them then, and the other way is gone until they are ready; else
        the gate opens at once and whoever calls one first waits.
    """

    def __init__(self, *kernels: Any, after: int, in_background: bool = False) -> None:
        self._kernels = kernels
        self._after = after
        self._in_background = in_background
        self._lock = threading.Lock()
        self._amount = 0
        self._is_open = False
        self._thread: threading.Thread | None = None

    def is_open(self, amount: int) -> bool:
        """Whether to use the kernels for so much."""
        if not self._is_open:
            with self._lock:
                self._amount += amount
                is_worth_it = self._amount > self._after
                self._is_open = (is_worth_it and not self._in_background) or all(
                    kernel.is_ready() for kernel in self._kernels
                )
                if is_worth_it and not self._is_open and self._thread is None:
                    self._thread = threading.Thread(target=self._compile, name="colmem-compile")
                    self._thread.start()
        return self._is_open

    def _compile(self) -> None:
        for kernel in self._kernels:
            kernel.compiled()
