"""Programming languages by the suffix of a file's name; natural languages are never guessed."""

from __future__ import annotations

from pathlib import PurePath
from typing import Final

_BY_SUFFIX: Final = {
    ".bash": "shell",
    ".c": "c",
    ".cc": "c++",
    ".clj": "clojure",
    ".cpp": "c++",
    ".cs": "c#",
    ".css": "css",
    ".cxx": "c++",
    ".dart": "dart",
    ".erl": "erlang",
    ".ex": "elixir",
    ".exs": "elixir",
    ".f90": "fortran",
    ".go": "go",
    ".h": "c",
    ".hpp": "c++",
    ".hs": "haskell",
    ".html": "html",
    ".java": "java",
    ".jl": "julia",
    ".js": "javascript",
    ".json": "json",
    ".jsx": "javascript",
    ".kt": "kotlin",
    ".lua": "lua",
    ".m": "objective-c",
    ".ml": "ocaml",
    ".php": "php",
    ".pl": "perl",
    ".proto": "protobuf",
    ".ps1": "powershell",
    ".py": "python",
    ".pyi": "python",
    ".r": "r",
    ".rb": "ruby",
    ".rs": "rust",
    ".scala": "scala",
    ".sh": "shell",
    ".sql": "sql",
    ".swift": "swift",
    ".tex": "tex",
    ".toml": "toml",
    ".ts": "typescript",
    ".tsx": "typescript",
    ".vue": "vue",
    ".xml": "xml",
    ".yaml": "yaml",
    ".yml": "yaml",
    ".zig": "zig",
}
_BY_NAME: Final = {"makefile": "make", "dockerfile": "dockerfile", "cmakelists.txt": "cmake"}


def language_of(path: PurePath) -> str | None:
    """The programming language of a file, when its name tells."""
    return _BY_NAME.get(path.name.lower()) or _BY_SUFFIX.get(path.suffix.lower())
