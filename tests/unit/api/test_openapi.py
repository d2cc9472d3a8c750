"""The schema is complete: every route is in it, and in the documentation."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any, cast

import pytest

from gpuherd.api.openapi import schema_of
from gpuherd.api.rest import build_rest
from gpuherd.api.services import Services

DOCS = Path(__file__).parents[3] / "docs" / "api.md"
APP = build_rest(cast("Services", None))
SCHEMA: dict[str, Any] = json.loads(schema_of(APP))
ROUTES = [
    (method, route.path_format)
    for route in APP.routes
    for method in sorted(route.methods - {"OPTIONS", "HEAD"})
    if route.path_format.startswith("/api/")
]


def test_there_are_routes() -> None:
    assert len(ROUTES) >= 10


@pytest.mark.parametrize(("method", "path"), ROUTES)
def test_every_route_is_described(method: str, path: str) -> None:
    operation = SCHEMA["paths"][path][method.lower()]
    assert operation["summary"]
    assert operation["description"]
    assert operation["responses"]["default"]["content"]["application/json"]["schema"]["$ref"].endswith(
        "/ErrorBody"
    )


@pytest.mark.parametrize(("method", "path"), [*ROUTES, ("GET", "/api/v1/openapi.json")])
def test_every_route_is_in_the_documentation(method: str, path: str) -> None:
    assert f"`{method} {path}`" in DOCS.read_text(encoding="utf-8")


def test_every_reference_leads_somewhere() -> None:
    text = json.dumps(SCHEMA)
    names = {part.split('"')[0] for part in text.split("#/components/schemas/")[1:]}
    assert names <= SCHEMA["components"]["schemas"].keys()
    assert "FleetChange" in names


def test_units_and_descriptions_reach_the_schema() -> None:
    power = SCHEMA["components"]["schemas"]["DeviceSample"]["properties"]["power_watts"]
    assert power["description"] == "Power drawn."
    assert power["anyOf"][0]["x-unit"] == "watts"


def test_the_schema_prints_the_same_text_every_time() -> None:
    command = [sys.executable, "-m", "gpuherd.api.openapi"]
    first, second = (subprocess.run(command, capture_output=True, check=True).stdout for _ in range(2))
    assert first == second == schema_of(APP) + b"\n"
