"""Blocking work in threads of its own."""

from __future__ import annotations

import asyncio
import os

from gpuherd.api.threads import BoundedThreads

NOBODY = 65_534


def test_work_is_done_also_where_its_priority_may_not_be_changed() -> None:
    """As under systemd's filter of system calls; more priority is refused to everyone but root."""
    threads = BoundedThreads("eager", threads=1, max_waiting=1, deadline_seconds=5.0, niceness=-5)
    before = os.geteuid()
    if before == 0:
        os.seteuid(NOBODY)
    try:
        assert asyncio.run(threads.run(lambda: "done")) == "done"
    finally:
        os.seteuid(before)
        threads.close()
