"""Whether the analysis kernels can be loaded at once, or would first be compiled for seconds.

Import this instead of the kernels to ask; it compiles nothing.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from colmem_kernels import _jit

_KERNELS: Final = {
    "analysis": {"analysis.decode_texts", "analysis.find_terms", "analysis.write_terms"},
    "stemming": {"stemming.stem_terms"},
}


def are_compiled() -> bool:
    """Whether the machine code of all analysis kernels lies in the cache."""
    for module, kernels in _KERNELS.items():
        folder = _jit.cache_dir(Path(__file__).with_name(f"{module}.py"))
        if folder is None:
            return False
        found = {path.name.partition("-")[0] for path in Path(folder).rglob("*.nbi")}
        if not found.issuperset(kernels):
            return False
    return True
