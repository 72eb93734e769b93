"""Takes a Markdown file apart: front matter, title, body."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_HEADING = re.compile(r" {0,3}#{1,6}[ \t]+(.*?)(?:[ \t]+#+)?[ \t]*")
_UNDERLINE = re.compile(r" {0,3}(?:=+|-+)[ \t]*")
_MARKER: Final = "---"


class Markdown(NamedTuple):
    """The parts of a file; the body is without front matter and without a heading on top."""

    title: str | None
    body: str
    tags: list[str]
    language: str | None


def take_apart(text: str) -> Markdown:
    """Read front matter (``title``, ``tags``, ``lang`` or ``language``) and the first heading.

    The title is the front matter's, else the first heading outside of code. A heading that opens
    the body and is the title is taken off the body, unless nothing else is there.
    """
    fields, body = _front_matter(text)
    heading, line, n_lines = _first_heading(body)
    named = _plain(fields.get("title", []))
    title = named or heading
    if heading and heading == title and line is not None:
        lines = body.split("\n")
        if not any(part.strip() for part in lines[:line]):
            rest = "\n".join(lines[line + n_lines :]).lstrip("\n")
            body = rest if rest.strip() else body
    language = _plain(fields.get("lang", [])) or _plain(fields.get("language", []))
    return Markdown(title or None, body, fields.get("tags", []), language or None)


def _front_matter(text: str) -> tuple[dict[str, list[str]], str]:
    """Values by key, as far as they are words or lists of words; and the text below."""
    lines = text.split("\n")
    if lines[0].rstrip() != _MARKER:
        return {}, text
    for end in range(1, len(lines)):
        if lines[end].rstrip() in (_MARKER, "..."):
            break
    else:
        return {}, text
    fields: dict[str, list[str]] = {}
    key = ""
    for line in lines[1:end]:
        stripped = line.strip()
        if stripped.startswith("- ") and key:
            fields[key].append(_unquoted(stripped[2:]))
        elif ":" in line and not line[:1].isspace():
            key, _, value = stripped.partition(":")
            fields[key] = _values(value.strip())
    return fields, "\n".join(lines[end + 1 :]).lstrip("\n")


def _values(value: str) -> list[str]:
    if value.startswith("[") and value.endswith("]"):
        return [word for part in value[1:-1].split(",") if (word := _unquoted(part))]
    return [_unquoted(value)] if value else []


def _unquoted(value: str) -> str:
    value = value.strip()
    if len(value) > 1 and value[0] == value[-1] and value[0] in "\"'":
        return value[1:-1]
    return value


def _plain(values: list[str]) -> str:
    return values[0] if len(values) == 1 else ""


def _first_heading(body: str) -> tuple[str, int | None, int]:
    """The first heading, the line it stands on, and how many lines it takes."""
    lines = body.split("\n")
    fence = ""
    for number, raw in enumerate(lines):
        line = raw.rstrip("\r")
        opened = _FENCE.match(line)
        if fence:
            if opened and opened[1].startswith(fence):
                fence = ""
            continue
        if opened:
            fence = opened[1]
            continue
        heading = _HEADING.fullmatch(line)
        if heading and heading[1].strip():
            return heading[1].strip(), number, 1
        below = lines[number + 1].rstrip("\r") if number + 1 < len(lines) else ""
        is_text = line.strip() and not line.startswith(("    ", "\t", ">", "-", "*", "+", "|"))
        after_blank = number == 0 or not lines[number - 1].strip()
        if is_text and after_blank and _UNDERLINE.fullmatch(below):
            return line.strip(), number, 2
    return "", None, 0
