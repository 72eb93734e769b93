"""The seven tools as a model sees them: name, description and the JSON Schema of the arguments.

No schema mentions a namespace or a reach; those are the host's.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import Any, Final

from colmem.contract import (
    Facet,
    FetchMode,
    ItemKind,
    LearningKind,
    Role,
    SourceKind,
)
from colmem.contract.limits import IDS_PER_GET_MAX

Schema = dict[str, Any]

READ_TOOLS: Final = (
    "memory_recall",
    "memory_fetch",
    "memory_list",
    "memory_get",
    "memory_explore",
)
WRITE_TOOLS: Final = ("memory_store", "memory_forget")
TOOL_NAMES: Final = READ_TOOLS + WRITE_TOOLS

LIMIT_MAX: Final = 50
LIMIT_DEFAULT: Final = 10
CONFIDENCE_DEFAULT: Final = 0.800000011920929
"""0.8 as an f32, printed as a double."""

FACETS: Final = tuple(facet for facet in Facet if facet is not Facet.NAMESPACE)
"""What a model may count by."""

_DESCRIPTIONS: Final = {
    "memory_recall": "Answer a question from stored memory, with citations of the items used.",
    "memory_fetch": "Search stored memory for a query and return the best matching items.",
    "memory_list": "List stored items that match a filter, one page at a time.",
    "memory_get": "Read stored items by their ids.",
    "memory_explore": "Count stored items by the values of one facet, to see what there is.",
    "memory_store": (
        "Store one item: pass exactly one of `learning`, `document` or `conversation`. "
        "Storing the same item again changes nothing."
    ),
    "memory_forget": "Remove stored items: pass exactly one of `ids` or `filter`.",
}


class ToolSpec(dict[str, Any]):
    """A tool's ``name``, ``description`` and ``parameters``; a plain dictionary for JSON."""

    @property
    def name(self) -> str:
        """What the tool is called by."""
        return str(self["name"])

    @property
    def description(self) -> str:
        """What the tool does, for the model."""
        return str(self["description"])

    @property
    def parameters(self) -> Schema:
        """JSON Schema of the arguments."""
        schema: Schema = self["parameters"]
        return schema


def tool_specs(modes: Sequence[FetchMode], *, writes: bool) -> list[ToolSpec]:
    """Describe the tools an engine with these fetch modes offers."""
    schemas = {
        "memory_recall": _recall(),
        "memory_fetch": _fetch(modes),
        "memory_list": _object(filter=_filter(), limit=_limit(), cursor=_cursor()),
        "memory_get": _object(["ids"], ids=_ids("Ids of the items to read.")),
        "memory_explore": _object(
            ["facet"],
            facet=_enum(FACETS, "What to count by."),
            filter=_filter(),
            limit=_limit(),
        ),
        "memory_store": _store(),
        "memory_forget": _object(ids=_ids("Ids of the items to remove."), filter=_filter()),
    }
    names = TOOL_NAMES if writes else READ_TOOLS
    return [
        ToolSpec(name=name, description=_DESCRIPTIONS[name], parameters=schemas[name])
        for name in names
        if name != "memory_fetch" or modes
    ]


def default_mode(modes: Sequence[FetchMode]) -> FetchMode:
    """Return the mode of a fetch that names none: hybrid where declared."""
    return FetchMode.HYBRID if FetchMode.HYBRID in modes else modes[0]


def _object(required: Iterable[str] = (), **properties: Schema) -> Schema:
    schema: Schema = {
        "type": "object",
        "properties": properties,
        "additionalProperties": False,
    }
    names = list(required)
    if names:
        schema["required"] = names
    return schema


def _text(description: str) -> Schema:
    return {"type": "string", "description": description}


def _time(description: str) -> Schema:
    return {"type": "string", "format": "date-time", "description": description}


def _enum(values: Iterable[StrEnum], description: str) -> Schema:
    names = [value.value for value in values]
    return {"type": "string", "enum": names, "description": description}


def _array(items: Schema, description: str) -> Schema:
    return {"type": "array", "items": items, "description": description}


def _strings(description: str) -> Schema:
    return _array({"type": "string"}, description)


def _ids(description: str) -> Schema:
    return {**_strings(description), "minItems": 1, "maxItems": IDS_PER_GET_MAX}


def _limit() -> Schema:
    return {
        "type": "integer",
        "minimum": 1,
        "maximum": LIMIT_MAX,
        "default": LIMIT_DEFAULT,
        "description": "How many to return at most.",
    }


def _cursor() -> Schema:
    return _text("The `next_cursor` of the page before, unchanged.")


def _filter() -> Schema:
    kinds = {"type": "string", "enum": [kind.value for kind in ItemKind]}
    sources = {"type": "string", "enum": [source.value for source in SourceKind]}
    return {
        **_object(
            kinds=_array(kinds, "Any of these kinds."),
            sources=_array(sources, "Any of these sources."),
            tags_any=_strings("At least one of these tags."),
            workspace=_text("This workspace."),
            folder=_text("This folder or one below it."),
            file_path=_text("This file, or a file below this path."),
            repo=_text("This repository."),
            url=_text("This address."),
            thread_id=_text("This thread."),
            agent_id=_text("This agent."),
            observed_after=_time("Observed at this time or later."),
            observed_before=_time("Observed before this time."),
        ),
        "description": "Conditions that all must hold.",
    }


def _recall() -> Schema:
    return _object(
        ["question"],
        question=_text("What to answer."),
        filter=_filter(),
        limit=_limit(),
        instructions=_text("How to phrase the answer."),
    )


def _fetch(modes: Sequence[FetchMode]) -> Schema:
    if not modes:
        return {}
    mode = {**_enum(modes, "How to rank."), "default": default_mode(modes).value}
    return _object(
        ["query"],
        query=_text("What to search for."),
        mode=mode,
        filter=_filter(),
        limit=_limit(),
        cursor=_cursor(),
    )


def _store() -> Schema:
    learning = _object(
        ["text"],
        text=_text("The statement."),
        learning_kind={**_enum(LearningKind, "What it states."), "default": "fact"},
        confidence={
            "type": "number",
            "minimum": 0.0,
            "maximum": 1.0,
            "default": CONFIDENCE_DEFAULT,
            "description": "How sure it is, from 0 to 1.",
        },
        evidence=_text("What it rests on."),
    )
    document = _object(["text"], title=_text("Its title."), text=_text("Its text."))
    turn = _object(["role", "text"], role=_enum(Role, "Who speaks."), text=_text("What is said."))
    turns = {**_array(turn, "The turns, in order."), "minItems": 1}
    conversation = _object(["turns"], turns=turns)
    return _object(
        learning={**learning, "description": "A statement worth keeping."},
        document={**document, "description": "A text worth keeping."},
        conversation={**conversation, "description": "An exchange worth keeping."},
        tags=_strings("Tags to keep it under."),
    )
