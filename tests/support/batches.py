"""Batches to write down, and whether two say the same."""

from __future__ import annotations

import numpy as np

from gpuherd.history.batch import (
    DEVICE_METRICS,
    HOST_METRICS,
    NOT_JUDGED,
    USE_MEASURES,
    Batch,
    Floats,
    FrameMark,
    Samples,
    SeriesKey,
    SessionKey,
    Uses,
)

__all__ = ["START", "make_batch", "same"]

START = 1_790_000_000.0


def make_batch(number: int, *, devices: int = 3, nodes: int = 2, uses: int = 2) -> Batch:
    """Make a batch that no other number gives; some of its names come back in others."""
    time = START + number
    keys = tuple(
        SeriesKey(f"node-{i % max(nodes, 1)}", f"GPU-{i}-{number // 3}", "A100 80GB") for i in range(devices)
    )
    stays = tuple(
        SessionKey(f"node-{i}", f"GPU-{i}", "A100 80GB", f"user-{number // 2}", None, "job", time)
        for i in range(uses)
    )
    cells = np.arange(devices * len(DEVICE_METRICS), dtype=np.float64).reshape(devices, len(DEVICE_METRICS))
    cells[:, 0] = (cells[:, 0] % 101) / 100
    cells[:, 1] = np.nan
    cells[:, 2] = number / 7
    if devices > 1:
        cells[0, 3] = np.nan
    return Batch(
        written_at=time,
        devices=Samples(
            keys=keys,
            subject=np.arange(devices, dtype=np.int32)[::-1].copy(),
            time=np.full(devices, time),
            values=cells,
            state=np.arange(devices, dtype=np.uint8),
            memory_total=np.full(devices, 2.0**36),
        ),
        hosts=Samples(
            keys=tuple(SeriesKey(f"node-{i}") for i in range(nodes)),
            subject=np.arange(nodes, dtype=np.int32),
            time=time + np.arange(nodes) / 3,
            values=np.full((nodes, len(HOST_METRICS)), number / 3),
            state=np.full(nodes, NOT_JUDGED, np.uint8),
            memory_total=np.full(nodes, np.nan),
        ),
        uses=Uses(
            keys=stays,
            commands=tuple(None if i else f"python train.py --run {number}" for i in range(uses)),
            session=np.arange(uses, dtype=np.int32),
            slot=np.full(uses, int(time) // 900 * 900, np.int64),
            first=np.full(uses, time - 1),
            last=np.full(uses, time),
            measures=np.full((uses, len(USE_MEASURES)), 1 / (number + 1)),
        ),
        marks=tuple(FrameMark(f"node-{i}", "boot", number) for i in range(nodes)),
        seen=tuple((f"node-{i}", time) for i in range(nodes)),
        notes=b"notes %d" % number,
    )


def same(one: Batch, other: Batch) -> bool:
    """Tell whether two batches say exactly the same."""
    return (
        (one.written_at, one.marks, one.seen, one.notes)
        == (other.written_at, other.marks, other.seen, other.notes)
        and _same_samples(one.devices, other.devices)
        and _same_samples(one.hosts, other.hosts)
        and (one.uses.keys, one.uses.commands) == (other.uses.keys, other.uses.commands)
        and all(
            _equal(getattr(one.uses, name), getattr(other.uses, name))
            for name in ("session", "slot", "first", "last", "measures")
        )
    )


def _same_samples(one: Samples, other: Samples) -> bool:
    return one.keys == other.keys and all(
        _equal(getattr(one, name), getattr(other, name))
        for name in ("subject", "time", "values", "state", "memory_total")
    )


def _equal(one: Floats, other: Floats) -> bool:
    return one.dtype == other.dtype and np.array_equal(one, other, equal_nan=one.dtype.kind == "f")
