"""Segment files: what is whole comes back, what is torn is cut off, whatever the damage."""

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
from gpuherd.agent.segments import SegmentWriter, read_segment
from gpuherd.model.errors import Failed

entries = st.lists(
    st.builds(Entry, st.integers(0, 2**63), st.sampled_from(FrameKind), st.binary(max_size=60)), max_size=6
)


def write(path: Path, context: list[Entry], own: list[Entry]) -> bytes:
    writer = SegmentWriter(path, context)
    for entry in own:
        writer.append([entry])
    writer.close()
    return path.read_bytes()


@given(entries, entries)
def test_what_was_written_comes_back(context: list[Entry], own: list[Entry]) -> None:
    with TemporaryDirectory() as folder:
        data = write(Path(folder) / "a.seg", context, own)
        contents = read_segment(Path(folder) / "a.seg")
    assert contents.context == tuple(context)
    assert contents.entries == tuple(own)
    assert contents.is_whole
    assert contents.sound_bytes == len(data)


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
    assert contents.is_whole == (contents.sound_bytes == cut and cut > 0)


@given(entries, st.data())
def test_no_damage_makes_up_frames(own: list[Entry], data: st.DataObject) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "a.seg"
        whole = bytearray(write(path, [], own))
        place = data.draw(st.integers(0, len(whole) - 1))
        whole[place] ^= data.draw(st.integers(1, 255))
        path.write_bytes(whole)
        contents = read_segment(path)
    assert contents.entries == tuple(own)[: len(contents.entries)]
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
    writer = SegmentWriter(tmp_path / "a.seg", [])
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
