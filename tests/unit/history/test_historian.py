"""Sinks get everything once, in order, and what they have not settled again after a start."""

from __future__ import annotations

import errno
import os
import threading
from pathlib import Path

import pytest

from gpuherd.history.batch import Batch, FrameMark
from gpuherd.history.historian import Historian
from gpuherd.history.settings import HistorySettings
from gpuherd.history.store import SinkHealth
from gpuherd.model.errors import Failed
from support.batches import START, make_batch
from support.running import PATIENCE_SECONDS

HOUR = 3600


class Shelf:
    """A sink that notes what it is given."""

    def __init__(self, name: str = "shelf", settled: int = 0) -> None:
        self.name = name
        self.settled = settled
        self.taken: list[tuple[bytes, int]] = []
        self.tended: list[int] = []
        self.error: Exception | None = None
        self.gate = threading.Event()
        self.gate.set()
        self.is_tending = threading.Event()
        self.is_taking = threading.Event()
        self.taking_gate = threading.Event()
        self.taking_gate.set()
        self.is_open = True
        self.is_remote = False

    def take(self, batch: Batch, file: int) -> None:
        self.is_taking.set()
        assert self.taking_gate.wait(PATIENCE_SECONDS)
        if self.error is not None:
            raise self.error
        if batch.notes:
            self.taken.append((batch.notes, file))

    def tend(self, now: float, open_file: int) -> None:
        self.is_tending.set()
        assert self.gate.wait(PATIENCE_SECONDS)
        self.tended.append(open_file)
        if self.error is not None:
            raise self.error

    def health(self) -> SinkHealth:
        return SinkHealth(name=self.name, state="ok")

    def close(self) -> None:
        self.is_open = False


def open_historian(folder: Path, *sinks: Shelf, wall: float = START, **settings: int) -> Historian:
    chosen = HistorySettings(**{"min_free_bytes": 0, **settings})  # type: ignore[arg-type]
    historian = Historian(folder, chosen, sinks, wall=lambda: wall)
    historian.open()
    return historian


def test_batches_go_to_all_sinks_and_come_again_after_a_start(tmp_path: Path) -> None:
    first, second = Shelf("first"), Shelf("second")
    historian = open_historian(tmp_path, first, second)
    for number in (0, 1, HOUR, HOUR + 1, 2 * HOUR):
        historian.append(make_batch(number))
    taken = [(b"notes 0", 1), (b"notes 1", 1), (b"notes 3600", 2), (b"notes 3601", 2), (b"notes 7200", 3)]
    assert first.taken == second.taken == taken
    historian.close()
    assert not first.is_open
    again = Shelf("first", settled=3), Shelf("second", settled=2)
    historian = open_historian(tmp_path, *again)
    assert again[0].taken == taken[4:]
    assert again[1].taken == taken[2:]
    historian.append(make_batch(9))
    assert again[0].taken[-1] == (b"notes 9", 4)
    historian.close()


def test_files_go_when_all_have_settled_them_and_marks_stay(tmp_path: Path) -> None:
    first, second = Shelf("first"), Shelf("second")
    historian = open_historian(tmp_path, first, second, wall=START + 2 * HOUR)
    for number in (0, HOUR, 2 * HOUR):
        historian.append(make_batch(number))
    historian.tend()
    assert first.tended == [3]
    assert historian.journal_health().files == 3
    first.settled, second.settled = 3, 2
    historian.tend()
    assert historian.journal_health().files == 2
    second.settled = 3
    historian.tend()
    assert historian.journal_health().files == 1
    historian.close()
    historian = open_historian(tmp_path, Shelf(settled=17), wall=START + 9 * HOUR)
    assert historian.marks.runs("node-0") == {"boot": 2 * HOUR}
    historian.append(make_batch(9 * HOUR))
    assert list((tmp_path / "journal").glob("00000017-*"))
    historian.close()


def test_an_hour_in_which_nothing_comes_ends_all_the_same(tmp_path: Path) -> None:
    shelf = Shelf()
    historian = open_historian(tmp_path, shelf, wall=START + HOUR)
    historian.append(make_batch(0))
    historian.tend()
    assert shelf.tended == [2]
    shelf.settled = 2
    historian.tend()
    historian.close()
    # The last file that holds anything stays, for its marks alone.
    (tmp_path / "journal" / "00000002-0123456789abcdef.journal").write_bytes(b"begun when it was killed")
    shelf = Shelf(settled=3)
    historian = open_historian(tmp_path, shelf)
    historian.tend()
    historian.close()
    historian = open_historian(tmp_path, shelf)
    assert shelf.taken == []
    assert historian.marks.runs("node-0") == {"boot": 0}
    historian.close()


def test_one_sink_that_fails_does_not_keep_the_others_from_working(tmp_path: Path) -> None:
    bad, good = Shelf("bad"), Shelf("good")
    historian = open_historian(tmp_path, bad, good)
    historian.append(make_batch(0))
    bad.error = Failed("its server is away")
    with pytest.raises(Failed, match="bad: its server is away"):
        historian.tend()
    assert good.tended == [1]
    bad.error = RuntimeError("a mistake")
    with pytest.raises(Failed, match="bad: RuntimeError: a mistake"):
        historian.tend()
    bad.error = None
    historian.tend()
    assert [health.state for health in historian.sink_health()] == ["ok", "ok"]
    historian.close()


def test_a_sink_that_could_not_take_a_batch_rests_until_it_is_given_it_again(tmp_path: Path) -> None:
    bad, good = Shelf("bad"), Shelf("good")
    historian = open_historian(tmp_path, bad, good)
    bad.error = RuntimeError("a mistake")
    historian.append(make_batch(0))
    bad.error = None
    historian.append(make_batch(1))
    assert (len(bad.taken), len(good.taken)) == (0, 2)
    with pytest.raises(Failed, match=r"bad: could not store a batch \(RuntimeError: a mistake\)"):
        historian.tend()
    assert (bad.tended, good.tended) == ([], [1])
    health = historian.sink_health()[0]
    assert (health.state, "restart the hub" in (health.last_error or "")) == ("failing", True)
    historian.close()
    again = Shelf("bad")
    open_historian(tmp_path, again).close()
    assert len(again.taken) == 2


def test_appending_does_not_wait_for_tending(tmp_path: Path) -> None:
    shelf = Shelf()
    historian = open_historian(tmp_path, shelf)
    shelf.gate.clear()
    tending = threading.Thread(target=historian.tend)
    tending.start()
    assert shelf.is_tending.wait(PATIENCE_SECONDS)
    historian.append(make_batch(0))
    assert len(shelf.taken) == 1
    closing = threading.Thread(target=historian.close)
    closing.start()
    assert shelf.is_open
    shelf.gate.set()
    tending.join(PATIENCE_SECONDS)
    closing.join(PATIENCE_SECONDS)
    assert not shelf.is_open


def test_a_store_elsewhere_that_is_frozen_keeps_no_other_from_its_turn(tmp_path: Path) -> None:
    here, elsewhere = Shelf("here"), Shelf("elsewhere")
    elsewhere.is_remote = True
    historian = open_historian(tmp_path, here, elsewhere)
    historian.append(make_batch(0))
    elsewhere.gate.clear()
    sending = threading.Thread(target=historian.tend_remote)
    sending.start()
    try:
        assert elsewhere.is_tending.wait(PATIENCE_SECONDS)
        for _ in range(3):
            own = threading.Thread(target=historian.tend_own)
            own.start()
            own.join(PATIENCE_SECONDS)
        assert len(here.tended) == 3
        assert elsewhere.tended == []
    finally:
        elsewhere.gate.set()
        sending.join(PATIENCE_SECONDS)
    historian.tend()
    assert (len(here.tended), len(elsewhere.tended)) == (4, 2)
    historian.close()


def test_a_file_is_not_called_complete_before_all_that_is_in_it_was_handed_out(tmp_path: Path) -> None:
    shelf = Shelf()
    historian = open_historian(tmp_path, shelf, wall=START + HOUR)
    shelf.taking_gate.clear()
    appending = threading.Thread(target=historian.append, args=[make_batch(0)])
    appending.start()
    assert shelf.is_taking.wait(PATIENCE_SECONDS)
    tending = threading.Thread(target=historian.tend)
    tending.start()
    assert not shelf.is_tending.wait(0.1)
    shelf.taking_gate.set()
    appending.join(PATIENCE_SECONDS)
    tending.join(PATIENCE_SECONDS)
    assert (len(shelf.taken), shelf.tended) == (1, [2])
    historian.close()


def test_without_room_nobody_gets_it_and_health_says_why(tmp_path: Path) -> None:
    shelf = Shelf()
    historian = open_historian(tmp_path, shelf, min_free_bytes=2**50)
    with pytest.raises(Failed, match="min_free_bytes"):
        historian.append(make_batch(0))
    assert shelf.taken == []
    assert historian.marks.runs("node-0") == {}
    health = historian.journal_health()
    assert (health.state, health.last_error_at) == ("failing", START)
    historian.close()


def test_damage_is_told_and_the_rest_is_kept(tmp_path: Path) -> None:
    historian = open_historian(tmp_path, Shelf())
    for number in range(4):
        historian.append(make_batch(number))
    historian.close()
    (file,) = (tmp_path / "journal").iterdir()
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(bytes(content[:-5]))
    shelf = Shelf()
    historian = open_historian(tmp_path, shelf)
    assert len(shelf.taken) == 2
    health = historian.journal_health()
    assert (health.damaged_records, health.torn_bytes > 0) == (1, True)
    historian.close()


def test_marks_know_the_highest_number_of_the_latest_runs(tmp_path: Path) -> None:
    historian = open_historian(tmp_path)
    marks = historian.marks
    marks.raise_to([FrameMark("a", f"boot-{number}", number) for number in range(10)])
    assert list(marks.runs("a")) == [f"boot-{number}" for number in range(2, 10)]
    marks.raise_to([FrameMark("a", "boot-9", 3)])
    assert marks.runs("a")["boot-9"] == 9
    marks.know("a", {"boot-9": 20, "old": 5, "boot-8": 1})
    assert "old" not in marks.runs("a")
    assert (marks.runs("a")["boot-9"], marks.runs("a")["boot-8"]) == (20, 8)
    assert marks.cap("a", {"boot-9": 25, "boot-8": 2, "new": 4}) == {"boot-9": 20, "boot-8": 2, "new": -1}
    historian.forget("a")
    assert marks.node_ids == ()


def test_a_batch_that_is_there_twice_is_given_to_each_sink_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    historian = open_historian(tmp_path, Shelf("first"), Shelf("second"))
    historian.append(make_batch(0))
    twice = make_batch(1)

    def refuse(*_: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    with monkeypatch.context() as broken:  # written, but nobody knows; and it cannot be taken back
        broken.setattr(os, "fdatasync", refuse)
        broken.setattr(os, "ftruncate", refuse)
        with pytest.raises(Failed, match="Input/output"):
            historian.append(twice)
    historian.append(twice)
    historian.close()
    # The first has settled the file of the first copy without having got it: it was handed out with the second.
    first, second = Shelf("first", settled=2), Shelf("second", settled=1)
    historian = open_historian(tmp_path, first, second)
    assert [notes for notes, _ in first.taken] == [b"notes 1"]
    assert [notes for notes, _ in second.taken] == [b"notes 0", b"notes 1"]
    historian.close()
