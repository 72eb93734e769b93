"""The description of the server: what it says holds, for right and for wrong requests."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import jsonschema_rs
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode
from schemathesis.specs.openapi.checks import negative_data_rejection, positive_data_acceptance
from surface_parts import Server, serving

import colmem
from colmem.adapters.http.openapi import document
from colmem.adapters.http.settings import ServerSettings
from colmem.client.operations import OPERATIONS

EXAMPLES, EXAMPLES_SLOW = 4, 100
SCHEMA = schemathesis.openapi.from_dict(document(ServerSettings()))
DESCRIBED = {found.ok().label: found.ok() for found in SCHEMA.get_all_operations()}
# Rules that a schema cannot say: what a cursor is, that 1.0 is no integer of JSON here, what lies
# within a folder, and what the bytes of a stream or a snapshot hold.
UNSAID = (
    "unknown cursor",
    "got `float`",
    "is not below the server's snapshot folder",
    "carries no digests",
    "give a directory",
    "snapshot",
)
# A mutation of one way in which a filter may set something leaves it valid by another.
FORGET = jsonschema_rs.validator_for(
    {"$ref": "#/components/schemas/ForgetTarget"} | document(ServerSettings())
)
# Their bodies are described elsewhere: the lines by the item's schema, arguments by GET /v1/tools.
ELSEWHERE = ("POST /v1/ingest", "POST /v1/tools/{name}")


@schemathesis.serializer("application/x-ndjson", "application/vnd.apache.arrow.stream")
def as_bytes(context: Any, value: Any) -> bytes:
    """Whatever is generated, as the bytes of a stream."""
    return str(value).encode(errors="replace")


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder: Path = tmp_path_factory.mktemp("snapshots")
    with colmem.open(":memory:") as engine, serving(engine, snapshots=folder) as server:
        yield server


EVERY = (
    pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE], ids=str),
    pytest.mark.parametrize("label", DESCRIBED),
)


@EVERY[0]
@EVERY[1]
def test_every_answer_is_as_described(served: Server, label: str, mode: GenerationMode) -> None:
    check(served, label, mode, EXAMPLES)


@pytest.mark.slow
@EVERY[0]
@EVERY[1]
def test_many_more_answers(served: Server, label: str, mode: GenerationMode) -> None:
    check(served, label, mode, EXAMPLES_SLOW)


def check(served: Server, label: str, mode: GenerationMode, n_examples: int) -> None:
    operation = DESCRIBED[label]
    if mode is GenerationMode.NEGATIVE and not (operation.body or operation.query):
        return  # there is nothing to get wrong

    @given(operation.as_strategy(generation_mode=mode))
    @settings(
        max_examples=n_examples,
        phases=[Phase.generate],
        derandomize=True,
        suppress_health_check=[*HealthCheck],
    )
    def answered(case: Any) -> None:
        response = case.call(base_url=served.url)
        text = response.content.decode(errors="replace")
        assert response.status_code < 500, text
        is_unsaid = label in ELSEWHERE or any(words in text for words in UNSAID)
        if label == "POST /v1/forget" and isinstance(case.body, dict):
            is_unsaid |= FORGET.is_valid(case.body)
        excluded = [positive_data_acceptance, negative_data_rejection] if is_unsaid else []
        case.validate_response(response, excluded_checks=excluded)

    try:
        answered()
    except Unsatisfiable:
        assert mode is GenerationMode.NEGATIVE


def test_every_operation_is_described(http: httpx.Client) -> None:
    described = http.get("/v1/openapi.json").json()
    for operation in OPERATIONS.values():
        methods = described["paths"][operation.path]
        assert "post" in methods
        assert ("get" in methods) == (operation.request is None)
    assert "security" not in described
