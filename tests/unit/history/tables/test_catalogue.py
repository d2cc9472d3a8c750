"""The list of what counts: its steps, those who hold on to it, and what is found after a start."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpuherd.history.tables.catalogue import CANNOT_BE_READ, Catalogue, Outdated
from gpuherd.history.tables.segments import Segment, checksum_of, segment_file
from gpuherd.model.errors import Failed

CONTENT = b"PAR1" + bytes(50) + (40).to_bytes(4, "little") + b"PAR1"


def make(catalogue: Catalogue, *, table: str = "rows", start: float = 0.0, end: float = 59.0) -> Segment:
    """Put a file in place that looks like a Parquet file from both ends."""
    serial = catalogue.next_serial()
    file = segment_file(table, int(start) // 60 * 60, serial)
    path = catalogue.folder / file
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(CONTENT)
    return Segment(
        file=file,
        table=table,
        partition=int(start) // 60 * 60,
        start=start,
        end=end,
        rows=1,
        size_bytes=len(CONTENT),
        checksum=checksum_of(path),
        serial=serial,
    )


def again(catalogue: Catalogue) -> Catalogue:
    catalogue.close()
    return Catalogue(catalogue.folder)


def test_starts_with_nothing(tmp_path: Path) -> None:
    catalogue = Catalogue(tmp_path / "new" / "history")
    assert catalogue.segments("rows") == ()
    assert catalogue.settled("anyone") == 0
    assert catalogue.oldest(["rows"]) is None
    assert (tmp_path / "new" / "history").stat().st_mode & 0o777 == 0o700


def test_a_step_outlives_a_restart(tmp_path: Path) -> None:
    catalogue = Catalogue(tmp_path)
    first, second = make(catalogue), make(catalogue, start=60, end=119)
    catalogue.commit(add=[second, first], settled={"usage": 4, "samples": 2})
    catalogue.commit(settled={"usage": 5})
    catalogue = again(catalogue)
    assert catalogue.segments("rows") == (first, second)
    assert (catalogue.settled("usage"), catalogue.settled("samples")) == (5, 2)
    assert catalogue.next_serial() > second.serial
    assert catalogue.size_bytes() == catalogue.size_bytes(["rows"]) == 2 * len(CONTENT)
    assert catalogue.size_bytes(["others"]) == 0
    assert catalogue.oldest(["rows"]) == 0.0


def test_a_range_has_both_its_ends(tmp_path: Path) -> None:
    catalogue = Catalogue(tmp_path)
    first, second = make(catalogue), make(catalogue, start=60, end=119)
    other = make(catalogue, table="others")
    catalogue.commit(add=[first, second, other])
    assert catalogue.segments("rows", 59.0, 60.0) == (first, second)
    assert catalogue.segments("rows", 59.5, 59.9) == ()
    assert catalogue.segments("rows", end=10) == (first,)
    assert catalogue.segments("rows", 119) == (second,)


def test_a_file_goes_when_nobody_holds_a_list_with_it(tmp_path: Path) -> None:
    catalogue = Catalogue(tmp_path)
    old = make(catalogue)
    catalogue.commit(add=[old])
    with catalogue.hold() as early:
        new = make(catalogue)
        catalogue.commit(add=[new], remove=[old])
        with catalogue.hold() as late:
            assert late.segments("rows") == (new,)
        assert early.segments("rows") == (old,)
        assert (tmp_path / old.file).exists()
    assert not (tmp_path / old.file).exists()
    assert (tmp_path / new.file).exists()


def test_what_is_gone_cannot_be_replaced(tmp_path: Path) -> None:
    catalogue = Catalogue(tmp_path)
    old = make(catalogue)
    catalogue.commit(add=[old])
    catalogue.commit(remove=[old])
    late = make(catalogue)
    generation = catalogue.generation
    with pytest.raises(Outdated):
        catalogue.commit(add=[late], remove=[old], settled={"usage": 9})
    assert catalogue.generation == generation
    assert catalogue.settled("usage") == 0
    assert not (tmp_path / late.file).exists()


def test_a_folder_belongs_to_one_hub(tmp_path: Path) -> None:
    catalogue = Catalogue(tmp_path)
    with pytest.raises(Failed, match="another hub is using"):
        Catalogue(tmp_path)
    catalogue.close()
    Catalogue(tmp_path).close()


def test_a_folder_that_cannot_be_one_is_named(tmp_path: Path) -> None:
    (tmp_path / "history").write_text("a file")
    with pytest.raises(Failed, match=r"history cannot be used: .*set history\.folder"):
        Catalogue(tmp_path / "history")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "writing").write_text("a file")
    with pytest.raises(Failed, match="other cannot be used"):
        Catalogue(tmp_path / "other")
    (tmp_path / "other" / "writing").unlink()
    Catalogue(tmp_path / "other").close()


def test_left_overs_go_and_what_is_not_ours_stays(tmp_path: Path) -> None:
    catalogue = Catalogue(tmp_path)
    listed, stray = make(catalogue), make(catalogue)
    catalogue.commit(add=[listed])
    (tmp_path / "writing" / "00000009.parquet").write_bytes(b"half")
    (tmp_path / "spill" / "readers").mkdir()
    foreign = [tmp_path / "rows" / "my-copy.parquet", tmp_path / "notes.txt", tmp_path / "rows" / "readme"]
    for path in foreign:
        path.write_text("mine")
    again(catalogue)
    assert (tmp_path / listed.file).exists()
    assert not (tmp_path / stray.file).exists()
    assert not list((tmp_path / "writing").iterdir())
    assert not list((tmp_path / "spill").iterdir())
    assert all(path.read_text() == "mine" for path in foreign)


@pytest.mark.parametrize("harm", ["gone", "empty", "short", "head", "foot"])
def test_a_file_that_is_no_more_what_it_was_is_told(tmp_path: Path, harm: str) -> None:
    catalogue = Catalogue(tmp_path)
    bad, good = make(catalogue), make(catalogue, start=60, end=119)
    catalogue.commit(add=[bad, good], settled={"usage": 3})
    path = tmp_path / bad.file
    harmed = {
        "empty": b"",
        "short": CONTENT[:-9],
        "head": b"X" + CONTENT[1:],
        "foot": CONTENT[:-8] + b"\xff" * 4 + CONTENT[-4:],
    }
    if harm == "gone":
        path.unlink()
    else:
        path.write_bytes(harmed[harm])
    for _ in range(2):  # it is told after further starts too
        catalogue = again(catalogue)
        assert catalogue.segments("rows") == (good,)
        (missing,) = catalogue.missing("rows", 0, 10)
        assert (missing.start, missing.end) == (0.0, 59.0)
        # Anyone may read this; which file it is, and what is wrong with it, is for those who run the hub.
        assert missing.reason == CANNOT_BE_READ
        (told,) = catalogue.unreadable(["rows", "others"])
        assert bad.file in told.reason
        assert catalogue.unreadable(["others"]) == ()
        assert catalogue.missing("rows", 60) == ()
        assert catalogue.missing("others") == ()
        assert catalogue.settled("usage") == 3
        assert [kept.name for kept in (tmp_path / "quarantine").glob("*")] == (
            [] if harm == "gone" else [bad.file.replace("/", "-")]
        )


@pytest.mark.parametrize("name", ["manifest.json", "manifest-copy.json"])
@pytest.mark.parametrize("harm", ["gone", "empty", "short", "flipped", "foreign"])
def test_either_copy_of_the_list_may_be_lost(tmp_path: Path, name: str, harm: str) -> None:
    catalogue = Catalogue(tmp_path)
    first, second = make(catalogue), make(catalogue, start=60, end=119)
    catalogue.commit(add=[first], settled={"usage": 1})
    catalogue.commit(add=[second], settled={"usage": 2})
    path = tmp_path / name
    content = path.read_bytes()
    middle = len(content) // 2
    flipped = content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :]
    if harm == "gone":
        path.unlink()
    else:
        path.write_bytes(
            {"empty": b"", "short": content[:middle], "flipped": flipped, "foreign": b"{}"}[harm]
        )
    for _ in range(2):
        catalogue = again(catalogue)
        assert catalogue.segments("rows") == (first, second)
        assert catalogue.settled("usage") == 2
        assert catalogue.lost() == ()
    catalogue.commit(settled={"usage": 3})
    assert path.read_bytes() == (tmp_path / "manifest.json").read_bytes() != content


def test_a_crash_between_the_copies_leaves_either_true(tmp_path: Path) -> None:
    catalogue = Catalogue(tmp_path)
    old = make(catalogue)
    catalogue.commit(add=[old], settled={"usage": 1})
    before = (tmp_path / "manifest-copy.json").read_bytes()
    new = make(catalogue)
    with catalogue.hold():
        catalogue.commit(add=[new], remove=[old], settled={"usage": 2})
        catalogue.close()
    (tmp_path / old.file).write_bytes(CONTENT)  # not yet deleted at that moment
    (tmp_path / "manifest-copy.json").write_bytes(before)
    catalogue = Catalogue(tmp_path)
    assert catalogue.segments("rows") == (new,)
    assert catalogue.settled("usage") == 2
    catalogue.close()

    (tmp_path / old.file).write_bytes(CONTENT)
    (tmp_path / "manifest-copy.json").write_bytes(before)
    (tmp_path / "manifest.json").write_bytes(b"damaged")
    catalogue = Catalogue(tmp_path)
    assert catalogue.segments("rows") == (old,)
    assert catalogue.settled("usage") == 1
    # Nobody can tell that it was never listed: it is not thrown away.
    assert [path.name for path in (tmp_path / "quarantine").iterdir()] == [new.file.replace("/", "-")]


def test_the_quarantine_is_emptied_in_time(tmp_path: Path) -> None:
    catalogue = Catalogue(tmp_path, clock=lambda: 1000.0)
    segment = make(catalogue)
    catalogue.commit(add=[segment])
    assert catalogue.set_aside(segment, "it is a test") is not None
    assert catalogue.set_aside(segment, "it is a test") is None
    (path,) = (tmp_path / "quarantine").iterdir()
    assert path.read_bytes() == CONTENT
    assert not (tmp_path / segment.file).exists()
    catalogue.empty_quarantine(1000.0)
    assert path.exists()
    catalogue.empty_quarantine(1000.1)
    assert not path.exists()
