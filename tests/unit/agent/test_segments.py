"""Segment files: what is whole comes back, whatever else is damaged."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuherd.agent.numbering import Entry, FrameKind
from gpuherd.agent.segments import RunFacts, SegmentWriter, read_segment
from gpuherd.model.errors import Failed
from gpuherd.wire.marked_records import mark_of
from gpuherd.wire.matrix import LAYOUT
from support.old_spool import write_old_segment

RUN = RunFacts(boot_id="run-a", layout=LAYOUT, interval_seconds=1.0, dropped_frames=7)

entries = st.lists(
    st.builds(Entry, st.integers(0, 2**63), st.sampled_from(FrameKind), st.binary(max_size=60)), max_size=6
)


def write(path: Path, context: list[Entry], own: list[Entry]) -> bytes:
    writer = SegmentWriter(path, RUN, context)
    for entry in own:
        writer.append([entry])
    writer.close()
    return path.read_bytes()


@given(entries, entries)
def test_what_was_written_comes_back(context: list[Entry], own: list[Entry]) -> None:
    with TemporaryDirectory() as folder:
        write(Path(folder) / "a.seg", context, own)
        contents = read_segment(Path(folder) / "a.seg")
    assert contents.context == tuple(context)
    assert contents.entries == tuple(own)
    assert contents.run == RUN
    assert contents.is_whole


@given(entries, entries, st.data())
def test_a_torn_tail_costs_only_itself(context: list[Entry], own: list[Entry], data: st.DataObject) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "a.seg"
        whole = write(path, context, own)
        cut = data.draw(st.integers(0, len(whole)))
        path.write_bytes(whole[:cut])
        contents = read_segment(path)
    found = (*contents.context, *contents.entries)
    assert found == (*context, *own)[: len(found)]
    assert cut < len(whole) or contents.is_whole
    assert contents.is_whole == (cut > 0 and contents.torn_bytes == 0)


@given(st.lists(st.binary(max_size=60), min_size=1, max_size=8), st.data())
def test_damage_costs_and_counts_only_what_was_damaged(messages: list[bytes], data: st.DataObject) -> None:
    own = [Entry(10 + number, FrameKind.SAMPLE, message) for number, message in enumerate(messages)]
    with TemporaryDirectory() as folder:
        path = Path(folder) / "a.seg"
        whole = bytearray(write(path, [], own))
        place = data.draw(st.integers(0, len(whole) - 1))
        whole[place] ^= data.draw(st.integers(1, 255))
        path.write_bytes(whole)
        contents = read_segment(path)
    missing = [one for one in own if one not in contents.entries]
    assert len(missing) <= 1, "one byte is in one record"
    assert contents.entries == tuple(one for one in own if one not in missing)
    assert (contents.run is None) == (not missing), "else it was the record of the run"
    assert not contents.is_whole
    assert contents.lost_frames(10, own[-1].seq) == len(missing)


def test_a_frame_cannot_pass_for_a_record(tmp_path: Path) -> None:
    forged = mark_of("b.seg").pack(b"\x02\x00" + (99).to_bytes(8, "little") + b"forged")
    own = [Entry(0, FrameKind.TABLE, forged), Entry(1, FrameKind.SAMPLE, b"real")]
    whole = bytearray(write(tmp_path / "a.seg", [], own))
    whole[whole.index(forged) - 3] ^= 1  # the head of the record that holds it
    (tmp_path / "a.seg").write_bytes(whole)
    assert read_segment(tmp_path / "a.seg").entries == (own[1],)


@given(entries, entries, st.data())
def test_segments_of_older_agents_are_read_up_to_their_first_damage(
    context: list[Entry], own: list[Entry], data: st.DataObject
) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "00000000000000000000.seg"
        write_old_segment(path, context, own)
        contents = read_segment(path)
        assert (contents.context, contents.entries) == (tuple(context), tuple(own))
        assert contents.is_whole
        whole = bytearray(path.read_bytes())
        whole[data.draw(st.integers(0, len(whole) - 1))] ^= data.draw(st.integers(1, 255))
        path.write_bytes(whole)
        contents = read_segment(path)
    found = (*contents.context, *contents.entries)
    assert found == (*context, *own)[: len(found)]
    assert not contents.is_whole


@given(st.binary(max_size=100))
def test_any_file_can_be_read(data: bytes) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "a.seg"
        path.write_bytes(data)
        assert read_segment(path).entries == ()


def test_a_missing_file_is_a_failure_with_its_name(tmp_path: Path) -> None:
    with pytest.raises(Failed, match=r"a\.seg"):
        read_segment(tmp_path / "a.seg")


def test_a_full_disk_leaves_the_file_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The write is cut in the middle of a record, as a full disk does; then there is room again."""
    kept, lost, later = (Entry(seq, FrameKind.SAMPLE, b"x" * 100) for seq in range(3))
    writer = SegmentWriter(tmp_path / "a.seg", RUN, [])
    writer.append([kept])
    monkeypatch.setattr(os, "write", _short_then_full(os.write))
    with pytest.raises(OSError, match="No space left"):
        writer.append([lost])
    monkeypatch.undo()
    writer.append([later])
    writer.close()
    contents = read_segment(tmp_path / "a.seg")
    assert contents.entries == (kept, later)
    assert contents.is_whole


def _short_then_full(real: Callable[..., int]) -> Callable[..., int]:
    written: list[int] = []

    def write_some(fd: int, data: memoryview) -> int:
        if written:
            raise OSError(errno.ENOSPC, "No space left on device")
        written.append(real(fd, data[:10]))
        return written[0]

    return write_some


def test_a_segment_is_for_its_owner_only(tmp_path: Path) -> None:
    write(tmp_path / "a.seg", [], [])
    assert (tmp_path / "a.seg").stat().st_mode & 0o777 == 0o600
