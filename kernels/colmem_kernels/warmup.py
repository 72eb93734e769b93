"""All kernels at once, for whoever wants to wait for their compilation now."""

from __future__ import annotations

import pkgutil
from importlib import import_module

import colmem_kernels
from colmem_kernels._jit import Kernel


def kernels() -> list[Kernel]:
    """Every kernel of the package, in order of modules and names; ``compiled()`` makes one ready.

    Imports all modules of kernels.
    """
    found: dict[int, Kernel] = {}
    for module in pkgutil.iter_modules(colmem_kernels.__path__):
        if not module.name.startswith(("_", "reference_", "warmup")):
            held = vars(import_module(f"colmem_kernels.{module.name}"))
            found |= {id(each): each for each in held.values() if isinstance(each, Kernel)}
    return list(found.values())
