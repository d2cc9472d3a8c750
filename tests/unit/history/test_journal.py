"""What was confirmed is read again, whole and once; damage takes only what it hits."""

from __future__ import annotations

import dataclasses
import errno
import os
import zlib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuherd.history import journal as journal_module
from gpuherd.history.batch import Batch, FrameMark, Numbering
from gpuherd.history.journal import Journal, JournalFiles, Reading
from gpuherd.history.tables.disk import DiskFull
from gpuherd.model.errors import Failed
from gpuherd.wire.marked_records import mark_of
from support.batches import make_batch, same
from support.soak import SOAK


def open_journal(folder: Path, **changes: object) -> Journal:
    return Journal(folder, **{"min_free_bytes": 0, "first_file": 1, **changes})  # type: ignore[arg-type]


def write(folder: Path, batches: list[Batch]) -> Path:
    """Write one file; give it."""
    journal = open_journal(folder)
    for batch in batches:
        journal.append(batch)
    journal.close()
    (path,) = journal.files.paths().values()
    return path


def read(path: Path, content: bytes) -> Reading:
    path.write_bytes(content)
    return JournalFiles(path.parent).read(1)


def test_batches_come_back_in_order(tmp_path: Path) -> None:
    batches = [make_batch(number) for number in range(12)]
    write(tmp_path, batches)
    reading = JournalFiles(tmp_path).read(1)
    assert len(reading.batches) == 12
    assert all(same(one, other) for (_, one), other in zip(reading.batches, batches, strict=True))
    assert (reading.damaged, reading.torn_bytes, reading.lost_names) == (0, 0, 0)


@given(
    st.lists(
        st.tuples(st.integers(0, 20), st.integers(0, 4), st.integers(1, 3), st.integers(0, 3)),
        min_size=1,
        max_size=6,
    )
)
@settings(max_examples=30 * SOAK, deadline=None)
@pytest.mark.soak
def test_any_batches_come_back(
    tmp_path_factory: pytest.TempPathFactory, shapes: list[tuple[int, int, int, int]]
) -> None:
    folder = tmp_path_factory.mktemp("journal")
    batches = [make_batch(n, devices=devices, nodes=nodes, uses=uses) for n, devices, nodes, uses in shapes]
    write(folder, batches)
    found = JournalFiles(folder).read(1).batches
    assert all(same(one, other) for (_, one), other in zip(found, batches, strict=True))


def test_keys_that_are_known_by_number_are_written_like_others(tmp_path: Path) -> None:
    first, second = Numbering(), Numbering()
    batches = []
    for number in range(12):
        numbering = first if number % 4 else second  # one is given up for another
        batch = make_batch(number)
        numbers = np.array([numbering.number(key) for key in batch.devices.keys])
        batches.append(
            dataclasses.replace(
                batch,
                devices=dataclasses.replace(batch.devices, numbering=numbering, numbers=numbers),
                uses=dataclasses.replace(batch.uses, numbers=np.array([0, 1]) + number // 2 * 2)
                if number % 2 == 0
                else batch.uses,
            )
        )
    write(tmp_path, batches)
    found = JournalFiles(tmp_path).read(1).batches
    assert all(same(one, other) for (_, one), other in zip(found, batches, strict=True))


def test_whatever_is_cut_off_all_before_it_is_kept(tmp_path: Path) -> None:
    batches = [make_batch(number, devices=1, nodes=0, uses=0) for number in range(3)]
    path = write(tmp_path, batches)
    content, ends = path.read_bytes(), record_ends(path)
    for length in range(len(content)):
        reading = journal_module._read(content[:length], path.name)
        whole = sum(end <= length for end in ends)
        assert len(reading.batches) == whole
        assert all(same(one, other) for (_, one), other in zip(reading.batches, batches, strict=False))
        assert reading.torn_bytes == length - ([0, *ends][whole])
        assert reading.damaged == 0


def test_whichever_byte_is_flipped_only_its_record_is_lost(tmp_path: Path) -> None:
    batches = [make_batch(number, devices=1, nodes=0, uses=0) for number in range(3)]
    path = write(tmp_path, batches)
    content, ends = path.read_bytes(), record_ends(path)
    for place in range(len(content)):
        flipped = bytearray(content)
        flipped[place] ^= 0x41
        reading = journal_module._read(bytes(flipped), path.name)
        hit = sum(end <= place for end in ends)
        left = batches[:hit] + batches[hit + 1 :]
        assert [batch.notes for _, batch in reading.batches] == [batch.notes for batch in left]
        assert (reading.damaged, reading.torn_bytes > 0) == ((1, False) if hit < 2 else (0, True))
        # Names of the lost record are said again in the next one.
        assert all(same(one, other) for (_, one), other in zip(reading.batches, left, strict=True))


def test_names_that_are_lost_for_good_take_only_their_rows(tmp_path: Path) -> None:
    batches = [make_batch(number) for number in (0, 1, 2, 6)]
    path = write(tmp_path, batches)
    content, ends = bytearray(path.read_bytes()), record_ends(path)
    content[20] ^= 1
    content[ends[0] + 20] ^= 1
    reading = read(path, bytes(content))
    assert reading.lost_names > 0
    third, fourth = (batch for _, batch in reading.batches)
    # The devices of the third were named in the first and again in the second; those of the fourth are new in it.
    assert (third.notes, len(third.devices), len(third.hosts)) == (b"notes 2", 0, 0)
    assert [key.uuid for key in fourth.devices.keys] == ["GPU-0-2", "GPU-1-2", "GPU-2-2"]
    assert len(fourth.devices) == 3
    assert len(fourth.hosts) == 0


def test_all_names_are_said_again_now_and_then(tmp_path: Path) -> None:
    batch = make_batch(0)
    path = write(tmp_path, [batch] * 60)
    content, ends = bytearray(path.read_bytes()), record_ends(path)
    content[20] ^= 1
    content[ends[0] + 20] ^= 1
    reading = read(path, bytes(content))
    assert reading.lost_names == 0
    assert all(same(found, batch) for _, found in reading.batches)
    assert len(reading.batches) == 58


def test_nothing_that_a_node_sends_can_pass_for_a_record(tmp_path: Path) -> None:
    inner = write(tmp_path, [make_batch(1)]).read_bytes()
    folder = tmp_path / "other"
    folder.mkdir()
    path = write(
        folder, [make_batch(2), Batch(written_at=make_batch(2).written_at, notes=inner), make_batch(3)]
    )
    content, ends = bytearray(path.read_bytes()), record_ends(path)
    content[ends[0] + 1] ^= 1
    reading = read(path, bytes(content))
    assert [batch.notes for _, batch in reading.batches] == [b"notes 2", b"notes 3"]


def record_ends(path: Path) -> list[int]:
    content, ends, place = path.read_bytes(), [], 0
    while place < len(content):
        place += 16 + int.from_bytes(content[place + 8 : place + 12], "little")
        ends.append(place)
    return ends


def test_files_end_with_their_size_and_with_the_hour(tmp_path: Path) -> None:
    journal = open_journal(tmp_path, max_file_bytes=3000)
    numbers = [journal.append(make_batch(0)) for _ in range(4)]
    assert numbers[0] == 1
    assert numbers[-1] > 1
    last = journal.open_file
    assert journal.append(make_batch(3600)) == last + 1
    journal.end_due(make_batch(3601).written_at)
    assert journal.open_file == last + 1
    journal.end_due(make_batch(7200).written_at)
    assert journal.open_file == last + 2
    journal.remove_before(last + 1)
    assert list(journal.files.paths()) == [last + 1]
    journal.remove_before(100)
    assert list(journal.files.paths()) == [last + 1]  # the newest stays
    assert journal.append(make_batch(7300)) == last + 2
    journal.remove_before(100)
    assert list(journal.files.paths()) == [last + 2]
    journal.close()


def test_a_new_journal_never_adds_to_an_old_file(tmp_path: Path) -> None:
    write(tmp_path, [make_batch(0)])
    journal = open_journal(tmp_path)
    assert journal.append(make_batch(1)) == 2
    journal.close()
    for path in journal.files.paths().values():
        path.unlink()
    assert open_journal(tmp_path, first_file=17).open_file == 17


def test_each_file_begins_with_what_it_is_told_to(tmp_path: Path) -> None:
    marks = (FrameMark("a", "boot", 7),)
    journal = open_journal(tmp_path, opening=lambda: Batch(written_at=1.0, marks=marks))
    for number in (0, 1, 3600):
        journal.append(make_batch(number))
    journal.close()
    assert [len(journal.files.read(number).batches) for number in (1, 2)] == [3, 2]
    assert all(journal.files.read(number).batches[0][1].marks == marks for number in (1, 2))


def test_with_too_little_room_nothing_is_written_until_there_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = open_journal(tmp_path, min_free_bytes=2**60)
    with pytest.raises(DiskFull, match="min_free_bytes"):
        journal.append(make_batch(0))
    assert journal.files.paths() == {}
    journal = open_journal(tmp_path)
    journal.append(make_batch(0))
    monkeypatch.setattr(journal, "_min_free_bytes", 2**60)
    with pytest.raises(DiskFull):
        journal.append(make_batch(1))
    monkeypatch.setattr(journal, "_min_free_bytes", 0)
    journal.append(make_batch(1))
    journal.close()
    assert [batch.notes for _, batch in journal.files.read(1).batches] == [b"notes 0", b"notes 1"]


@pytest.mark.parametrize("call", ["write", "fdatasync"])
@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO])
def test_a_write_that_fails_leaves_nothing_and_may_be_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str, number: int
) -> None:
    journal = open_journal(tmp_path)
    journal.append(make_batch(0))
    original = os.write

    def fail(descriptor: int, *rest: bytes) -> int:
        if call == "write":
            original(descriptor, rest[0][:10])  # a part goes through
        raise OSError(number, os.strerror(number))

    batch = make_batch(1)
    with monkeypatch.context() as patch:
        patch.setattr(os, call, fail)
        for _ in range(3):
            with pytest.raises(DiskFull if number == errno.ENOSPC else Failed, match="free some space"):
                journal.append(batch)
    journal.append(batch)
    journal.append(make_batch(2))
    journal.close()
    readings = [journal.files.read(file) for file in journal.files.paths()]
    assert [b.notes for reading in readings for _, b in reading.batches] == [
        b"notes 0",
        b"notes 1",
        b"notes 2",
    ]
    assert sum(reading.torn_bytes for reading in readings) == 0


def test_a_batch_that_was_written_after_all_has_the_same_id_when_it_is_written_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal, batch = open_journal(tmp_path), make_batch(0)

    def fail(*_: object) -> None:
        raise OSError(errno.EIO, "no answer")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fdatasync", fail)
        patch.setattr(os, "ftruncate", fail)
        patch.setattr(Path, "unlink", fail)
        with pytest.raises(Failed):
            journal.append(batch)
    journal.append(batch)
    journal.append(make_batch(1))
    journal.close()
    ids = [batch_id for file in (1, 2) for batch_id, _ in journal.files.read(file).batches]
    assert len(ids) == 3
    assert len(set(ids)) == 2


def test_a_file_that_is_being_written_can_be_read(tmp_path: Path) -> None:
    journal = open_journal(tmp_path)
    for number in range(3):
        journal.append(make_batch(number))
        assert len(journal.files.read(1).batches) == number + 1
    journal.close()


def test_files_of_others_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "notes.journal").write_text("mine")
    (tmp_path / "00000001-0000000000000000.journal").write_bytes(b"\0" * 100)
    journal = open_journal(tmp_path)
    assert journal.append(make_batch(0)) == 2
    journal.close()
    assert journal.files.read(1).torn_bytes == 100
    assert journal.files.read(99) == Reading()
    assert oct((tmp_path / journal.files.paths()[2]).stat().st_mode)[-3:] == "600"


def test_a_record_of_no_sense_with_a_right_checksum_is_passed_over(tmp_path: Path) -> None:
    path = write(tmp_path, [make_batch(0), make_batch(1)])
    content = path.read_bytes()
    mark, seed = mark_of(path.name)
    payload = b"\x93\x01\x02\x03"
    record = (
        mark + len(payload).to_bytes(4, "little") + zlib.crc32(payload, seed).to_bytes(4, "little") + payload
    )
    reading = read(path, record + content)
    assert (len(reading.batches), reading.damaged) == (2, 1)
