"""One JSON error shape for the whole API, whoever found the error."""

from __future__ import annotations

import logging
from typing import Annotated, Any

import msgspec
from litestar import Request, Response
from litestar.exceptions import HTTPException, ValidationException
from msgspec import Meta, Struct

from gpuherd.api.record_calls import NoAnswer
from gpuherd.api.sparing_log import SparingLog
from gpuherd.bookings.refusals import TimeChoice
from gpuherd.bookings.views import BookingConflict
from gpuherd.model.bookings import EpochSeconds
from gpuherd.model.errors import Failed, GpuherdError, Refused
from gpuherd.model.text import clean
from gpuherd.records.transactions import OutcomeUnknown, RecordsFailed

__all__ = [
    "EXCEPTION_HANDLERS",
    "ErrorBody",
    "ErrorDetail",
    "HttpError",
    "error_body",
    "unavailable",
    "unexpected",
]

log = logging.getLogger(__name__)

RECORDS_FAILED = "the database is not available right now; try again"
OUTCOME_UNKNOWN = (
    "the database did not respond in time; the change may have been made, so check before you try again"
)

_sparing = SparingLog(log)


class ErrorDetail(Struct, frozen=True, omit_defaults=True):
    """What went wrong."""

    code: Annotated[str, Meta(description="Stable, for programs.")]
    message: Annotated[str, Meta(description="For people; says what to do.")]
    path: Annotated[str | None, Meta(description="Place in the input that is wrong.")] = None
    choices: Annotated[
        tuple[TimeChoice, ...],
        Meta(
            description="Both readings of a time that can be read in two ways (ambiguous_time, nonexistent_time)."
        ),
    ] = ()
    conflicts: Annotated[
        tuple[BookingConflict, ...], Meta(description="The first few conflicting bookings.")
    ] = ()
    next_free: Annotated[
        EpochSeconds | None,
        Meta(description="After a conflict: when all devices are free for the same duration."),
    ] = None


class ErrorBody(Struct, frozen=True):
    """The body of every error response."""

    error: ErrorDetail


class HttpError(GpuherdError):
    """An answer that is not a success: the HTTP side of every error raised on purpose."""

    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        *,
        path: str | None = None,
        headers: dict[str, str] | None = None,
        choices: tuple[TimeChoice, ...] = (),
        conflicts: tuple[BookingConflict, ...] = (),
        next_free: int | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.detail = ErrorDetail(code, message, path, choices, conflicts, next_free)
        self.headers = headers or {}


def error_body(error: HttpError) -> bytes:
    """Encode an error as the body of its answer."""
    return msgspec.json.encode(ErrorBody(error.detail))


def unavailable(error: Failed) -> HttpError:
    """Give the answer to a request that something which may pass keeps from being served.

    Why the database fails is for the log and the admins' health: anybody can ask for an address.
    """
    message = str(error)
    if isinstance(error, OutcomeUnknown):
        # No Retry-After: a program that obeys it would make the change twice.
        _sparing.warning("records", f"a request failed: {error}")
        return HttpError(503, "outcome_unknown", OUTCOME_UNKNOWN)
    if isinstance(error, RecordsFailed):
        _sparing.warning("records", f"a request failed: {error}")
        message = RECORDS_FAILED
    return HttpError(503, "unavailable", message, headers={"Retry-After": "5"})


_CODES = {
    400: "invalid_request",
    401: "unauthorized",
    403: "forbidden",
    404: "not_found",
    405: "method_not_allowed",
    413: "body_too_large",
    415: "unsupported_media_type",
    429: "too_many_requests",
}
_REFUSED_STATUS = {
    "account_closed": 403,
    "account_disabled": 403,
    "account_expired": 403,
    "bad_text": 422,
    "code_invalid": 403,
    "credential_taken": 409,
    "group_needed": 403,
    "last_admin": 409,
    "linux_name_taken": 409,
    "login_failed": 401,
    "name_taken": 409,
    "name_wrong": 422,
    "password_elsewhere": 409,
    "password_expired": 403,
    "password_weak": 422,
    "password_wrong": 403,
    "scope_needs_role": 422,
    "setup_done": 409,
    "token_invalid": 403,
    "too_many_attempts": 429,
    "too_many_feeds": 409,
    "too_many_frames": 429,
    "too_many_tokens": 409,
    "unknown_account": 404,
    "unknown_node": 404,
}


def _from_litestar(error: HTTPException) -> HttpError:
    code = _CODES.get(error.status_code, "http_error")
    message, path = error.detail or code, None
    if isinstance(error, ValidationException) and isinstance(error.extra, list) and error.extra:
        first: dict[str, Any] = error.extra[0]
        path = clean(str(first.get("key", "")), 200) or None
        message = str(first.get("message") or message)
    if error.status_code == 404:
        message = "there is nothing at this address"
    if error.status_code == 405:
        message = "this address does not support that method"
    return HttpError(
        error.status_code, code, clean(message, 400), path=path, headers=dict(error.headers or {})
    )


def _as_http_error(error: Exception) -> HttpError:
    if isinstance(error, HttpError):
        return error
    if isinstance(error, HTTPException) and error.status_code < 500:
        return _from_litestar(error)
    if isinstance(error, Refused):
        status = _REFUSED_STATUS.get(error.code, 400)
        headers = {"Retry-After": "30"} if status == 429 else None
        return HttpError(status, error.code, str(error), headers=headers)
    if isinstance(error, Failed):
        return unavailable(error)
    if isinstance(error, RecursionError):
        return HttpError(400, "invalid_request", "the body is nested too deeply")
    if isinstance(error, UnicodeDecodeError):
        return HttpError(400, "invalid_request", "the request is not valid UTF-8; encode it as UTF-8")
    return unexpected(error)


def unexpected(error: Exception) -> HttpError:
    """Log an unexpected error, and return the answer to the request."""
    _sparing.unexpected("unexpected error while answering a request; please report it", error)
    return HttpError(500, "internal_error", "internal error; the hub's log says why")


_REPEATABLE = frozenset({"/api/v1/session"})
"""Logging in or out twice is harmless, so these requests can simply be repeated."""


def _respond(request: Request[Any, Any, Any], error: Exception) -> Response[bytes]:
    is_change = request.method not in ("GET", "HEAD") and request.scope["path"] not in _REPEATABLE
    if isinstance(error, NoAnswer) and is_change:
        error = OutcomeUnknown(str(error))
    http_error = _as_http_error(error)
    return Response(
        error_body(http_error),
        status_code=http_error.status,
        media_type="application/json",
        headers=http_error.headers,
    )


EXCEPTION_HANDLERS: Any = {HTTPException: _respond, GpuherdError: _respond, Exception: _respond}
