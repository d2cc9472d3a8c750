"""The note on a node whose agent lost frames before the hub got them."""

from __future__ import annotations

from gpuherd.model.reports import Problem

__all__ = ["dropped_problem"]


def dropped_problem(frames: int) -> Problem:
    """Make the note; like the count, it stays until the hub is restarted."""
    return Problem(
        code="frames_dropped",
        message=f"its agent lost {frames} reports before sending them, because its spool was full or "
        "damaged, so its history has gaps. The agent's log says which; raise "
        "agent.spool_max_bytes, or check the node's disk",
    )
