"""Enrolment beside a running hub, or without one: what the command line uses. Light to import."""

from __future__ import annotations

from gpuherd.api.settings import HubSettings
from gpuherd.auth.enrolment import Enrolment
from gpuherd.records.database import open_records, records_file
from gpuherd.records.nodes import NodeRecords

__all__ = ["open_enrolment"]


def open_enrolment(settings: HubSettings) -> Enrolment:
    """Open the records for enrolling and removing nodes. Blocking; ``Misconfigured`` if they cannot be opened."""
    return Enrolment(NodeRecords(open_records(settings.records_url or records_file(settings.state_dir))))
