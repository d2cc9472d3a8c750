"""Enrolment beside a running hub, or without one: what the command line uses. Light to import."""

from __future__ import annotations

from gpuherd.api.open_records import open_hub_records
from gpuherd.api.settings import HubSettings
from gpuherd.auth.enrolment import Enrolment

__all__ = ["open_enrolment"]


def open_enrolment(settings: HubSettings) -> Enrolment:
    """Open the records for enrolling and removing nodes. Blocking; ``Misconfigured`` if they cannot be opened."""
    return Enrolment(open_hub_records(settings).nodes)
