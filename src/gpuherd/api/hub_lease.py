"""The lease that shows others that this hub runs on its records."""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import socket

from sqlalchemy import Engine

from gpuherd.api.record_calls import RecordCalls
from gpuherd.model.errors import Failed
from gpuherd.records.leases import RENEW_SECONDS, LeaseRecords

__all__ = ["RENEW_SECONDS", "Lease", "own_lease"]

END_SECONDS = 3.0


class Lease:
    """Renewed while the hub runs. The lease of a killed hub expires by itself."""

    def __init__(self, records: LeaseRecords, calls: RecordCalls) -> None:
        self._records = records
        self._calls = calls

    async def renew(self) -> None:
        """Take or renew it."""
        await self._calls.run(self._records.renew)

    async def end(self) -> None:
        """Release it, if the database answers soon."""
        with contextlib.suppress(Failed, TimeoutError):
            async with asyncio.timeout(END_SECONDS):
                await self._calls.run(self._records.end)


def own_lease(engine: Engine, calls: RecordCalls) -> Lease:
    """Make the lease of this process."""
    host = socket.gethostname()
    return Lease(LeaseRecords(engine, lease_id=secrets.token_hex(16), host=host, pid=os.getpid()), calls)
