"""What the resources of the past have in common: their parameters, and how an answer is sent."""

from __future__ import annotations

from typing import Annotated, Any

from litestar import Response
from litestar.params import QueryParameter

from gpuherd.api.history_service import Answer, TableFormat
from gpuherd.history.store import MAX_POINTS
from gpuherd.model.history import UsageKey

__all__ = [
    "By",
    "Device",
    "Format",
    "Group",
    "Job",
    "Node",
    "Points",
    "Since",
    "Type",
    "Until",
    "User",
    "Zone",
    "send",
]

_TIMES = (
    "UTC epoch seconds, ISO 8601 with or without a zone, a day such as 2026-10-01, or a time ago such as 7d"
)
Since = Annotated[
    str | None,
    QueryParameter(
        name="from", max_length=64, description=f"Start: {_TIMES}. Default: 24 hours before the end."
    ),
]
Until = Annotated[
    str | None,
    QueryParameter(
        name="to",
        max_length=64,
        description="End, in the same formats; a day includes its end. Default: now.",
    ),
]
Points = Annotated[
    int,
    QueryParameter(ge=1, le=MAX_POINTS, description="Maximum number of points; fewer for large requests."),
]
Format = Annotated[TableFormat, QueryParameter(description="JSON, or a table with a header line.")]
Zone = Annotated[
    str | None,
    QueryParameter(max_length=64, description="IANA time zone of days and hours. Default: the hub's."),
]
By = Annotated[UsageKey, QueryParameter(description="Group rows by.")]
User = Annotated[
    str | None,
    QueryParameter(max_length=256, description="Only this user, as shown; for the public, a pseudonym."),
]
Group = Annotated[str | None, QueryParameter(max_length=256, description="Only members of this group.")]
Node = Annotated[str | None, QueryParameter(max_length=96, description="Only this node, by its id.")]
Type = Annotated[
    str | None, QueryParameter(max_length=256, description="Only devices of this type, by short name.")
]
Job = Annotated[str | None, QueryParameter(max_length=256, description="Only this batch job.")]
Device = Annotated[
    str | None, QueryParameter(max_length=96, description="Only this device: `gpu01/3` or its UUID.")
]


def send(answer: Answer) -> Response[Any]:
    """Give an answer as it is to be sent; a file to be kept has a name."""
    headers = {"Cache-Control": "private, no-store"}
    if answer.file_name is not None:
        headers["Content-Disposition"] = f'attachment; filename="{answer.file_name}"'
    if answer.policy is not None:
        headers["Content-Security-Policy"] = answer.policy
    return Response(answer.body, media_type=answer.media_type, headers=headers)
