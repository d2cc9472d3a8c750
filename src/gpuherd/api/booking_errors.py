"""What the booking desk refuses, as HTTP answers that name the field."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from gpuherd.api.booking_faces import conflicts_of
from gpuherd.api.errors import HttpError
from gpuherd.bookings.herd import Herd
from gpuherd.bookings.refusals import Forbidden, Taken, UnclearTime, Unfit, Untimely
from gpuherd.model.errors import Refused

__all__ = ["telling_refusals"]

_STATUS = {
    "unknown_booking": 404,
    "changed_meanwhile": 409,
    "past": 409,
    "conflict": 409,
    "idempotency_key_in_use": 409,
    "unknown_account": 409,
}
_PATHS = {
    "too_many_devices": "devices",
    "no_devices": "devices",
    "too_many_gpu_hours": "end",
    "reversed": "end",
    "past": None,
}


@contextmanager
def telling_refusals(herd: Herd) -> Iterator[None]:
    """Turn refusals into ``HttpError``: 404 and 403, 409 for what others or the time forbid, else 422."""
    try:
        yield
    except Refused as error:
        raise _http_error(error, herd) from error


def _http_error(error: Refused, herd: Herd) -> HttpError:
    if isinstance(error, Taken):
        return HttpError(
            409,
            error.code,
            str(error),
            path=error.path,
            conflicts=conflicts_of(error.bookings, error.devices, herd),
            next_free=error.next_free,
        )
    if isinstance(error, Forbidden):
        return HttpError(403, error.code, str(error))
    if isinstance(error, UnclearTime):
        return HttpError(422, error.code, str(error), path=error.path, choices=error.choices)
    if isinstance(error, Untimely):
        return HttpError(409, error.code, str(error), path=error.path)
    if isinstance(error, Unfit):
        return HttpError(422, error.code, str(error), path=error.path)
    return HttpError(_STATUS.get(error.code, 422), error.code, str(error), path=_PATHS.get(error.code))
