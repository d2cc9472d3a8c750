"""When every list of files is lost, use is counted once all the same, and names that were taken away stay away."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpuherd.history.settings import HistorySettings
from gpuherd.model.devices import DeviceFacts
from support.used_herd import GIB, START, device_row, frame, scene
from support.used_hub import UsedHub

DAY = 86_400.0
GPU = DeviceFacts(uuid="g0", index=0, name="X1", memory_total_bytes=8 * 2**30)


def lose_lists(hub: UsedHub, folder: Path) -> None:
    hub.close()
    for name in ("manifest.json", "manifest-copy.json"):
        (folder / name).unlink()
    hub._open()


def seconds(hub: UsedHub) -> float:
    return hub.reader.figures("user", START - DAY, START + DAY).totals.sums.gpu_seconds


def test_use_is_counted_once_and_pseudonyms_stay(tmp_path: Path) -> None:
    hub = UsedHub(tmp_path, HistorySettings(min_free_bytes=0, pseudonymise_after_days=30.0))
    here = scene("n", [GPU], (0, "ada", None, None, "compute"))
    row = [device_row(0.5, GIB, 100.0)]
    hub.take([frame(here, START + at, row, [GIB], 60.0) for at in range(0, 3601, 60)])
    hub.now += 3 * DAY
    for _ in range(4):
        hub.tend()
    assert hub.tables.segments("usage_days")
    assert seconds(hub) == 3600
    settled = hub.book.settled
    lose_lists(hub, tmp_path)
    # The newest file of the journal is kept in any case; the book must not take it again.
    assert hub.book.settled == settled
    assert seconds(hub) == 3600
    hub.tend()
    assert hub.tables.segments("usage_days")
    assert seconds(hub) == 3600
    hub.now += 40 * DAY
    for _ in range(4):
        hub.tend()
    lose_lists(hub, tmp_path)
    for _ in range(4):
        hub.tend()
    assert [row.key for row in hub.reader.figures("user", START, START + DAY).rows] == ["~ada"]
    assert seconds(hub) == pytest.approx(3600)
    hub.close()
