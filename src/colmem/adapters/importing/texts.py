"""Files that are one document each: Markdown, plain text, source code."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from colmem import ColmemError, MemoryMeta, Timestamp, document, is_blank
from colmem.adapters.importing.items import Origin
from colmem.adapters.importing.languages import language_of
from colmem.adapters.importing.markdown import Markdown, take_apart
from colmem.adapters.importing.reading import WIDE_MARKS, Items, Problem, Reading, not_utf8

TEXT_BYTES_MAX: Final = 16 * 2**20  # a document beyond is a mistake more often than a text
SNIFFED_BYTES: Final = 8192
_MIMES: Final = {".md": "text/markdown", ".markdown": "text/markdown", ".txt": "text/plain"}


def is_binary(path: Path) -> bool:
    """Whether a file's beginning holds a zero byte and no mark of UTF-16."""
    with path.open("rb") as file:
        head = file.read(SNIFFED_BYTES)
    return b"\0" in head and not head.startswith(WIDE_MARKS)


def read_text(path: Path, origin: Origin, reading: Reading) -> Items:
    """The document of a file: title, tags and language from Markdown, time of change from the file.

    A file of white space only gives nothing.
    """
    try:
        size, changed_ns = path.stat().st_size, path.stat().st_mtime_ns
        if size > TEXT_BYTES_MAX:
            limit = f"{TEXT_BYTES_MAX // 2**20} MiB"
            yield Problem(str(path), f"{size} bytes, a document may have {limit}; split the file")
            return
        text = path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        yield Problem(str(path), error.strerror or str(error))
        return
    except UnicodeDecodeError as error:
        yield Problem(str(path), not_utf8(error))
        return
    reading.consumed(size)
    if is_blank(text):
        return
    suffix = path.suffix.lower()
    is_markdown = _MIMES.get(suffix) == "text/markdown"
    parts = take_apart(text) if is_markdown else Markdown(None, text, [], language_of(path))
    fields = origin.fields()
    fields["observed_at"] = Timestamp(*divmod(changed_ns, 1_000_000_000))
    fields["language"] = parts.language or origin.language
    fields["tags"] = [*origin.tags, *(tag for tag in parts.tags if tag not in origin.tags)]
    item = document(
        parts.body, title=parts.title, mime=_MIMES.get(suffix), meta=MemoryMeta(**fields)
    )
    try:
        item.validate()
    except ColmemError as error:
        yield Problem(str(path), error.message)
        return
    yield item
