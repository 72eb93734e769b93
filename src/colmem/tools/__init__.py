"""The seven tools a model may call, for any engine and free of any runtime."""

from __future__ import annotations

from colmem.tools.memory_tools import MemoryTools
from colmem.tools.scope import ToolScope
from colmem.tools.specs import READ_TOOLS, TOOL_NAMES, WRITE_TOOLS, ToolSpec

__all__ = ["READ_TOOLS", "TOOL_NAMES", "WRITE_TOOLS", "MemoryTools", "ToolScope", "ToolSpec"]
