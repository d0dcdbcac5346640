"""What the server says of itself is what it does: requests made from its own schema."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from soar_dlm.lm import LM
from tests.serving import Served, served

CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]
PATHS = {
    "/v1/completions": 20,
    "/v1/fim/completions": 20,
    "/v1/chat/completions": 20,
    "/v1/canvas": 20,
    "/v1/models": 1,
    "/v1/models/{name}": 5,
    "/v1/strategies": 1,
    "/v1/examples": 10,
    "/healthz": 1,
    "/readyz": 1,
    "/metrics": 1,
}
"""How many requests are made for each path: as many as there is to vary."""


@pytest.fixture(scope="module")
def server(random_llada: LM) -> Iterator[Served]:
    with served(random_llada, max_tokens=160, max_rows=8) as found:
        yield found


@pytest.mark.parametrize("path", PATHS)
def test_no_request_of_the_schema_breaks_it_or_gets_what_is_not_documented(server: Served, path: str) -> None:
    schema = schemathesis.openapi.from_url(f"{server.url}/openapi.json")
    method = next(iter(schema.raw_schema["paths"][path]))

    @settings(
        max_examples=PATHS[path],
        derandomize=True,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(schema[path][method.upper()].as_strategy())
    def check(case: Any) -> None:
        response = case.call(timeout=60)
        case.validate_response(response, checks=CHECKS)

    check()


def test_every_path_is_tried(server: Served) -> None:
    assert PATHS.keys() == httpx.get(f"{server.url}/openapi.json").json()["paths"].keys()


def test_the_schema_names_every_setting_and_option(server: Served) -> None:
    known = httpx.get(f"{server.url}/openapi.json").json()["components"]["schemas"]["CompletionRequest"]["properties"]
    for name in ("beam", "threshold", "metric", "tokens_per_step", "block_length", "cache", "length", "max_length"):
        assert known[name]["description"]
