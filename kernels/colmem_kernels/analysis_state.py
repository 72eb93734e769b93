"""Whether the analysis kernels can be loaded at once, or would first be compiled for seconds.

Import this instead of the kernels to ask; it compiles nothing.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from colmem_kernels import _jit

_KERNELS: Final = ("analysis.decode_texts", "analysis.find_terms", "analysis.write_terms")


def are_compiled() -> bool:
    """Whether the machine code of all analysis kernels lies in the cache."""
    folder = _jit._CACHE_DIR
    if folder is None:
        return False
    found = {path.name.partition("-")[0] for path in Path(folder).rglob("*.nbi")}
    return found.issuperset((*_KERNELS, "stemming.stem_terms"))
