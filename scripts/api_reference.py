"""docs/reference/api.md: every route with its parameters, bodies and answers, from the hub's OpenAPI document."""

from __future__ import annotations

import re
from typing import Any, cast

import msgspec
from litestar import Litestar
from litestar.routes import HTTPRoute

from gpuherd.api.access import Access, access_of
from gpuherd.api.openapi import schema_of
from gpuherd.api.rest import build_rest
from gpuherd.api.services import Services

__all__ = ["api_page"]

INTRODUCTION = """\
# HTTP API: every route

[HTTP API](../api.md) explains how to use the API, the live stream and errors. This page lists every route and every
field. Programs can read the same from `GET /api/v1/openapi.json` or, without a hub, `python -m gpuherd.api.openapi`.
Paths are relative to the hub's base path. Numbers are in base units (bytes, watts, hertz, ratios 0–1, seconds, UTC
epoch seconds). A field that is null or missing is unknown, never zero. Every error response is an
[ErrorBody](#errorbody)."""
_NEEDS = {
    Access.OPEN: "nothing",
    Access.NODE: "a node's credential",
    Access.COUNTS: "to see the totals: a login, or `hub.public`",
    Access.LOOK: 'to see the herd: a login, or `hub.public = "read"`',
    Access.ACCOUNT: "a login",
    Access.BOOK: "a member's login, or a token that may `book`",
    Access.SELF: "a login in the browser, not a token",
    Access.ADMIN: "an admin",
    Access.ADMIN_SELF: "an admin's login in the browser, not a token",
}
_METHODS = ("get", "post", "put", "patch", "delete")
_MEDIA_NAMES = {
    "text/csv": "CSV",
    "text/markdown": "Markdown",
    "text/html": "a page",
    "text/event-stream": "events",
}


def api_page() -> str:
    """Put the page together."""
    app = build_rest(cast("Services", None))  # handlers are only described here, never called
    schema: dict[str, Any] = msgspec.json.decode(schema_of(app))
    needs = _needs(app)
    routes = [
        (method, path, schema["paths"][path][method])
        for path in sorted(schema["paths"])
        for method in _METHODS
        if method in schema["paths"][path]
    ]
    parts = [INTRODUCTION, "## Routes", _overview(routes)]
    parts += [_route(method, path, operation, needs[path, method]) for method, path, operation in routes]
    parts.append("## Structures")
    parts += [_structure(name, shape) for name, shape in sorted(schema["components"]["schemas"].items())]
    parts.append("This page is written by `make generate` from the hub's own description of itself.")
    return "\n\n".join(parts) + "\n"


def _needs(app: Litestar) -> dict[tuple[str, str], str]:
    found = {}
    for route in app.routes:
        if isinstance(route, HTTPRoute):
            for handler in route.route_handlers:
                if (access := access_of(handler)) is not None:
                    path = re.sub(r":\w+}", "}", route.path)
                    found.update({(path, method.lower()): _NEEDS[access] for method in handler.http_methods})
    return found


def _overview(routes: list[tuple[str, str, dict[str, Any]]]) -> str:
    lines = ["| route | what it does |", "|---|---|"]
    for method, path, operation in routes:
        lines.append(f"| [`{method.upper()} {path}`](#{_anchor(method, path)}) | {operation['summary']} |")
    return "\n".join(lines)


def _anchor(method: str, path: str) -> str:
    return re.sub(r"[^a-z0-9_-]", "", f"{method}-{path}".lower())


def _route(method: str, path: str, operation: dict[str, Any], needs: str) -> str:
    parts = [
        f"### {method.upper()} {path}",
        f"**{operation['summary']}.** {_prose(operation.get('description', ''))}",
    ]
    parts.append(f"Needs {needs}.")
    if operation.get("parameters"):
        lines = ["| parameter | in | type | meaning |", "|---|---|---|---|"]
        for each in operation["parameters"]:
            required = ", required" if each["required"] and each["in"] != "path" else ""
            meaning = _cell(each.get("description") or each["schema"].get("description", ""))
            lines.append(
                f"| `{each['name']}` | {each['in']}{required} | {_type(each['schema'])} | {meaning} |"
            )
        parts.append("\n".join(lines))
    body = operation.get("requestBody")
    if body:
        content = body["content"]["application/json"]["schema"]
        parts.append(f"Body: {_type(content)}.")
    parts.append("\n".join(["| answer | with |", "|---|---|", *(_answers(operation["responses"]))]))
    return "\n\n".join(parts)


def _answers(responses: dict[str, Any]) -> list[str]:
    lines = []
    for code, answer in responses.items():
        kinds = [
            _MEDIA_NAMES.get(media, _type(described.get("schema", {})) if "json" in media else media)
            for media, described in answer.get("content", {}).items()
        ]
        described = ", or ".join(kind for kind in kinds if kind != "null") or "nothing"
        lines.append(f"| {'else' if code == 'default' else code} | {described} |")
    return lines


def _structure(name: str, shape: dict[str, Any]) -> str:
    parts = [f"### {name}"]
    if shape.get("description"):
        parts.append(_prose(shape["description"]))
    fields = shape.get("properties")
    if not fields:
        parts.append(f"{_type({key: value for key, value in shape.items() if key != 'title'})}.")
        return "\n\n".join(parts)
    needed = set(shape.get("required", ()))
    lines = ["| field | type | meaning |", "|---|---|---|"]
    for field, described in fields.items():
        mark = "" if field in needed else " (optional)"
        lines.append(f"| `{field}`{mark} | {_type(described)} | {_cell(_meaning(described))} |")
    parts.append("\n".join(lines))
    return "\n\n".join(parts)


def _meaning(schema: dict[str, Any]) -> str:
    if "description" in schema:
        return str(schema["description"])
    for inner in (*schema.get("anyOf", ()), *schema.get("oneOf", ()), schema.get("items") or {}):
        if isinstance(inner, dict) and "description" in inner:
            return str(inner["description"])
    return ""


def _type(schema: dict[str, Any]) -> str:
    if "$ref" in schema:
        name = schema["$ref"].rsplit("/", 1)[1]
        return f"[{name}](#{name.lower()})"
    if "enum" in schema:
        return ", ".join(f"`{msgspec.json.encode(value).decode()}`" for value in schema["enum"])
    if "const" in schema:
        return f"`{msgspec.json.encode(schema['const']).decode()}`"
    for key in ("anyOf", "oneOf"):
        if key in schema:
            return " or ".join(_type(inner) for inner in schema[key])
    kind = schema.get("type")
    if isinstance(kind, list):
        return " or ".join(kind)
    if kind == "array":
        if "prefixItems" in schema:
            return "list of " + ", ".join(_type(inner) for inner in schema["prefixItems"])
        return f"list of {_type(schema.get('items') or {})}"
    if kind == "object":
        values = schema.get("additionalProperties")
        return f"table of {_type(values)}" if isinstance(values, dict) else "table"
    return f"{kind or 'anything'}{_bounds(schema)}"


def _bounds(schema: dict[str, Any]) -> str:
    low, high = schema.get("minimum"), schema.get("maximum")
    shortest, longest = schema.get("minLength"), schema.get("maxLength")
    if low is not None and high is not None:
        return f", {low} to {high}"
    if low is not None:
        return f", {low} or more"
    if high is not None:
        return f", {high} at most"
    if longest is not None:
        return f", {f'{shortest} to ' if shortest else 'up to '}{longest} characters"
    return ""


def _prose(text: str) -> str:
    """Write a docstring as Markdown; what else it holds is not meant as mark-up."""
    return re.sub(r"([*<])", r"\\\1", text.replace("``", "`"))


def _cell(text: str) -> str:
    return " ".join(_prose(text).split()).replace("|", "\\|")
