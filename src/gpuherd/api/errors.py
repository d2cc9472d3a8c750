"""One JSON error shape for the whole API, whoever found the error."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Annotated, Any

import msgspec
from litestar import Request, Response
from litestar.exceptions import HTTPException, ValidationException
from msgspec import Meta, Struct

from gpuherd.bookings.refusals import TimeChoice
from gpuherd.bookings.views import BookingConflict
from gpuherd.model.bookings import EpochSeconds
from gpuherd.model.errors import Failed, GpuherdError, Refused
from gpuherd.model.text import clean
from gpuherd.records.transactions import RecordsFailed

__all__ = ["EXCEPTION_HANDLERS", "ErrorBody", "ErrorDetail", "HttpError", "error_body", "unavailable"]

log = logging.getLogger(__name__)

RECORDS_FAILED = "the records cannot be read or written right now; try again"
LOG_SECONDS = 60.0
"""How often the log says why the records cannot be used, however many ask."""


class ErrorDetail(Struct, frozen=True, omit_defaults=True):
    """What went wrong."""

    code: Annotated[str, Meta(description="Stable, for programs.")]
    message: Annotated[str, Meta(description="For people; says what to do.")]
    path: Annotated[str | None, Meta(description="Place in the input that is wrong.")] = None
    choices: Annotated[
        tuple[TimeChoice, ...],
        Meta(description="Of a time that can be read in two ways (ambiguous_time, nonexistent_time), both."),
    ] = ()
    conflicts: Annotated[
        tuple[BookingConflict, ...], Meta(description="Of a conflict, what is in the way: the first few.")
    ] = ()
    next_free: Annotated[
        EpochSeconds | None, Meta(description="Of a conflict, when all would be free for as long.")
    ] = None


class ErrorBody(Struct, frozen=True):
    """The body of every answer that is not a success."""

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


class RecordsTrouble:
    """What the log says of failing records: a line per window, with how many requests had none of their own."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._told_at = float("-inf")
        self._untold = 0

    def tell(self, error: RecordsFailed) -> None:
        """Write the reason, unless one was written a moment ago."""
        now = self._monotonic()
        if now - self._told_at < LOG_SECONDS:
            self._untold += 1
            return
        log.warning("a request failed: %s (and %d before it that are not listed)", error, self._untold)
        self._told_at, self._untold = now, 0


_records_trouble = RecordsTrouble()


def unavailable(error: Failed) -> HttpError:
    """Give the answer to a request that something which may pass keeps from being served.

    Why the database fails is for the log and the admins' health: anybody can ask for an address.
    """
    message = str(error)
    if isinstance(error, RecordsFailed):
        _records_trouble.tell(error)
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
        message = "this address does not take that method"
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
    log.error("unexpected error while answering a request", exc_info=error)
    return HttpError(500, "internal_error", "the hub failed to answer; its log says why")


def _respond(_: Request[Any, Any, Any], error: Exception) -> Response[bytes]:
    http_error = _as_http_error(error)
    return Response(
        error_body(http_error),
        status_code=http_error.status,
        media_type="application/json",
        headers=http_error.headers,
    )


EXCEPTION_HANDLERS: Any = {HTTPException: _respond, GpuherdError: _respond, Exception: _respond}
