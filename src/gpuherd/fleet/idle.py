"""How much of the last minutes each device was at work: a window that rolls, so that a blip is not work.

A kernel that runs for a second every few minutes (a keep-alive, a monitor, someone who tries a cell) must not make a
forgotten GPU look used. The window is cut into buckets; the oldest is emptied when a new one begins.
"""

from __future__ import annotations

from gpuherd.fleet.rows import WORK_BUCKETS, Bools, DeviceRows, Floats

__all__ = ["note_work"]


def note_work(rows: DeviceRows, works: Bools, now: float, window_seconds: float) -> Floats:
    """Count the time since the last call for those that work; give the share of the window that each has worked.

    ``now`` is monotonic. Time that nobody judged, because the hub was busy or away, counts at most a bucket's length.
    """
    length = window_seconds / WORK_BUCKETS
    bucket = int(now // length)
    if rows.judged_at is not None:
        passed = bucket - int(rows.judged_at // length)
        for emptied in range(bucket - min(passed, WORK_BUCKETS) + 1, bucket + 1):
            rows.work[:, emptied % WORK_BUCKETS] = 0.0
        rows.work[works, bucket % WORK_BUCKETS] += min(now - rows.judged_at, length)
    rows.judged_at = now
    share: Floats = rows.work.sum(axis=1) / window_seconds
    return share
