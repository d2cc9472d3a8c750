"""The API's schema: Litestar's paths over msgspec's own component schemas.

``python -m gpuherd.api.openapi`` prints it without starting anything; the page's TypeScript types are made of it.
"""

from __future__ import annotations

import sys
from typing import Any, cast

import msgspec
from litestar import Litestar
from msgspec import Struct

from gpuherd.api.calendars import CreatedFeed, FeedRequest
from gpuherd.api.errors import ErrorBody, ErrorDetail
from gpuherd.api.health import Health, HealthSummary
from gpuherd.api.people_views import (
    AccountChange,
    AccountExport,
    AccountRequest,
    CreatedAccount,
    CreatedToken,
    ErasureRequest,
    KeptSession,
    KeptToken,
    PasswordChange,
    Renaming,
    TemporaryPassword,
    TokenRequest,
)
from gpuherd.api.resources.enroll import EnrolmentRequest, EnrolmentResult
from gpuherd.api.resources.nodes import AcknowledgedFaults, NamedGpu
from gpuherd.api.resources.reports import ReportReceipt
from gpuherd.api.resources.session import LoginRequest, SessionView
from gpuherd.api.resources.setup import SetupRequest
from gpuherd.api.rest import build_rest
from gpuherd.api.services import Services
from gpuherd.bookings.requests import (
    BookingChange,
    BookingRequest,
    Cancellation,
    CopyRequest,
    Decision,
    Extension,
)
from gpuherd.bookings.views import BookingPolicy, BookingView, FreeSlot, TimelineView
from gpuherd.fleet.changes import FleetChange, OwnCommands
from gpuherd.fleet.glance import Glance
from gpuherd.fleet.recent import RecentView
from gpuherd.fleet.views import DeviceView, FleetView, NodeView, UserView
from gpuherd.model.history import (
    Distribution,
    HerdSeries,
    HourMap,
    MonthlyReport,
    SeriesView,
    TrendsView,
    UsageOverTime,
    UsageReport,
    UsageSessions,
    UserSeries,
)
from gpuherd.model.reports import Report

__all__ = ["main", "schema_of"]

_ROOTS: tuple[type[Struct], ...] = (
    FleetView,
    Glance,
    NodeView,
    NamedGpu,
    AcknowledgedFaults,
    RecentView,
    DeviceView,
    UserView,
    FleetChange,
    OwnCommands,
    Health,
    HealthSummary,
    Report,
    ReportReceipt,
    SessionView,
    LoginRequest,
    SetupRequest,
    Renaming,
    PasswordChange,
    ErasureRequest,
    KeptSession,
    KeptToken,
    TokenRequest,
    CreatedToken,
    CreatedFeed,
    FeedRequest,
    AccountRequest,
    AccountChange,
    CreatedAccount,
    TemporaryPassword,
    AccountExport,
    EnrolmentRequest,
    EnrolmentResult,
    BookingRequest,
    BookingChange,
    Extension,
    CopyRequest,
    Decision,
    Cancellation,
    BookingView,
    TimelineView,
    FreeSlot,
    BookingPolicy,
    SeriesView,
    HerdSeries,
    UserSeries,
    UsageReport,
    UsageOverTime,
    TrendsView,
    HourMap,
    Distribution,
    UsageSessions,
    MonthlyReport,
    ErrorBody,
    ErrorDetail,
)
_MEDIA_TYPES = {"csv": "text/csv", "markdown": "text/markdown", "html": "text/html"}
_NODE_OPERATIONS = {"postReport", "agentLink"}
_DESCRIPTION = (
    "See, share and book the GPUs of all your machines. Numbers are in base units; null means unknown."
)


def _components() -> dict[str, Any]:
    # msgspec knows every bound, unit and description that is declared on the fields; Litestar drops some of them.
    _, components = msgspec.json.schema_components(_ROOTS, ref_template="#/components/schemas/{name}")
    return components


def _complete_operation(operation: dict[str, Any]) -> None:
    error = {
        "description": "Error; the body says why.",
        "content": {"application/json": {"schema": {"$ref": "#/components/schemas/ErrorBody"}}},
    }
    operation["responses"].pop("400", None)
    operation["responses"]["default"] = error
    if operation["operationId"] == "agentLink":
        del operation["responses"]["200"]
        operation["responses"]["101"] = {"description": "The connection is open."}
    operation.pop("deprecated", None)
    _tell_formats(operation)
    for parameter in operation.get("parameters", ()):
        for noise in ("deprecated", "allowEmptyValue", "allowReserved"):
            parameter.pop(noise, None)
    if operation["operationId"] in _NODE_OPERATIONS:
        operation["security"] = [{"node": []}]


def _tell_formats(operation: dict[str, Any]) -> None:
    """Say what else an operation answers with, if one may choose."""
    for parameter in operation.get("parameters", ()):
        if parameter["name"] == "format":
            content = operation["responses"]["200"]["content"]
            for name in parameter["schema"]["enum"]:
                if name in _MEDIA_TYPES:
                    content[_MEDIA_TYPES[name]] = {"schema": {"type": "string"}}


def schema_of(app: Litestar) -> bytes:
    """Describe an application as OpenAPI 3.1 JSON; the same text for the same code."""
    schema: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(app.openapi_schema.to_schema()))
    schema["info"]["description"] = _DESCRIPTION
    components = _components()
    missing = schema["components"]["schemas"].keys() - components.keys()
    if missing:
        raise LookupError(f"add to the schema's roots: {', '.join(sorted(missing))}")
    schema["components"] = {
        "schemas": components,
        "securitySchemes": {
            "node": {
                "type": "http",
                "scheme": "bearer",
                "description": "A node's credential from POST /enroll.",
            }
        },
    }
    for path in schema["paths"].values():
        for operation in path.values():
            _complete_operation(operation)
    return msgspec.json.format(msgspec.json.encode(schema, order="sorted"), indent=2)


def main() -> None:
    """Print the schema."""
    # The handlers are only described here, never called, so they get no services.
    sys.stdout.buffer.write(schema_of(build_rest(cast("Services", None))) + b"\n")


if __name__ == "__main__":
    main()
