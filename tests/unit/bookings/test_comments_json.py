"""comments.json as it is found in the wild, and as the older page wants it back."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from gpuherd.bookings.comments_json import (
    MAX_FILE_BYTES,
    CommentEntry,
    Comments,
    read_comments,
    write_comments,
)
from gpuherd.model.errors import Refused

PARIS = ZoneInfo("Europe/Paris")
README = """{
  "GPU_MACHINE_NAME": [  // you could also use a dictionary instead of a list { "0": {"name": ....} }
    {  // an element with index 0
      "name": "WHO_IS_USING_IT",
      "date": "2026-12-01 18:00",  // until then
      "comment": "see http://example.org//a // b"
    },
    { // GPU1
      "name": "SOMEONE_ELSE",
      "date": "SOME_WHERE_IN_A_PAST",
      "comment": "booked by P\xe8re No\xebl"
    },
  ],
  "gputest001-pa4": {
    "3": {"name": "pnoel", "date": "2018-08-01 00:00", "comment": "booked by P\xe8re No\xebl"}
  },
  "gputest002-pa4": []  // no reservation info for this machine
}"""


def read(text: str | bytes) -> Comments:
    return read_comments(text if isinstance(text, bytes) else text.encode(), PARIS)


def at(year: int, month: int, day: int, hour: int = 0, minute: int = 0) -> int:
    return int(datetime(year, month, day, hour, minute, tzinfo=UTC).timestamp())


def told(comments: Comments) -> list[str]:
    return [complaint.sentence for complaint in comments.complaints]


def one(date: str) -> Comments:
    return read(json.dumps({"h": [{"name": "ann", "date": date, "comment": ""}]}))


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "latin-1", "cp1252", "utf-16"])
def test_both_forms_comments_and_encodings(encoding: str) -> None:
    comments = read(README.encode(encoding))
    assert comments.entries == (
        CommentEntry(
            host="GPU_MACHINE_NAME",
            index=0,
            name="WHO_IS_USING_IT",
            until=at(2026, 12, 1, 17),
            comment="see http://example.org//a // b",
            line=3,
        ),
        CommentEntry(
            host="gputest001-pa4",
            index=3,
            name="pnoel",
            until=at(2018, 7, 31, 22),
            comment="booked by P\xe8re No\xebl",
            line=15,
        ),
    )
    assert told(comments) == [
        'GPU_MACHINE_NAME:1: its date "SOME_WHERE_IN_A_PAST" cannot be read; write YYYY-MM-DD HH:MM'
    ]


def test_lines_of_two_encodings_in_one_file() -> None:
    first, second = '{"a":[{"name":"é","date":"2026-12-01"}],\n', '"b":[{"name":"é","date":"2026-12-01"}]}'
    comments = read(first.encode() + second.encode("latin-1"))
    assert [entry.name for entry in comments.entries] == ["é", "é"]


@pytest.mark.parametrize(
    "empty",
    [
        *("", "  \n", "{}", "[]", '{"h": []}', '{"h": {}}', '{"h": null}', '{"h": [null, "", [], {}]}'),
        *('{"h": [{"name": "", "date": "", "comment": ""}]}', '{"h": [{"name": null}]}', '{"h": {"x": {}}}'),
    ],
)
def test_what_is_empty_is_no_fault(empty: str) -> None:
    found = read(empty)
    assert (found.entries, found.complaints) == ((), ())


@pytest.mark.parametrize(
    ("date", "until"),
    [
        ("2026-07-01 18:00", at(2026, 7, 1, 16)),
        ("2026-07-01T18:00:59", at(2026, 7, 1, 16) + 59),
        (" 2026-7-1   9:05 ", at(2026, 7, 1, 7, 5)),
        ("2026-07-01", at(2026, 6, 30, 22)),
        ("2026-07-01 24:00", at(2026, 7, 1, 22)),
        ("2026-07-01 18:00Z", at(2026, 7, 1, 18)),
        ("2026-07-01T18:00:00-05:00", at(2026, 7, 1, 23)),
        ("2026-10-25 02:30", at(2026, 10, 25, 1, 30)),  # twice that night: the later
        ("2026-03-29 02:30", at(2026, 3, 29, 1, 30)),  # never that night: an hour on
        ("1999-01-01 00:00", at(1998, 12, 31, 23)),
        ("9999-12-31 23:59", at(9999, 12, 31, 22, 59)),
    ],
)
def test_dates(date: str, until: int) -> None:
    assert [entry.until for entry in one(date).entries] == [until]


@pytest.mark.parametrize(
    ("date", "part"),
    [
        ("3d 4h", "is a duration without a start"),
        ("2026-02-30 10:00", "does not exist"),
        ("2026-01-01 25:00", "does not exist"),
        ("0000-01-01 00:00", "does not exist"),
        ("1960-01-01", "is out of range"),
        ("01/02/2026", "cannot be read"),
        ("next friday", "cannot be read"),
        ("٢٠٢٦-01-01", "cannot be read"),
        ("9" * 500, "cannot be read"),
    ],
)
def test_dates_that_cannot_be_used_are_told_with_a_remedy(date: str, part: str) -> None:
    comments = one(date)
    assert comments.entries == ()
    (complaint,) = told(comments)
    assert complaint.startswith('h:0: its date "')
    assert part in complaint
    assert complaint.endswith("write YYYY-MM-DD HH:MM")
    assert len(complaint) < 200


GOOD = '{"name": "ann", "date": "2026-12-01"}'


@pytest.mark.parametrize(
    ("gpus", "complaint"),
    [
        (f"[5, {GOOD}]", "h:0: is not an entry"),
        (f'{{"one": {GOOD}, "1": {GOOD}}}', "h:one: is not the index"),
        (f'{{"01": {GOOD}, "1": {GOOD}}}', "h:01: is not the index"),
        (f'{{"-1": {GOOD}, "1": {GOOD}}}', "h:-1: is not the index"),
        (f'{{"99999999999999999999": {GOOD}, "1": {GOOD}}}', "h:99999999999999999999: is not the index"),
        (f'[{{"name": "ann", "date": ""}}, {GOOD}]', "h:0: ann has no date"),
        (f'[{{"date": "2026-12-01"}}, {GOOD}]', "h:0: has a date but no name"),
        (f'[{{"name": ["x"], "date": "2026-12-01"}}, {GOOD}]', "h:0: its name is not a string"),
        (f'[{{"name": "x", "date": {{}}}}, {GOOD}]', "h:0: its date is not a string"),
    ],
)
def test_a_bad_entry_does_not_cost_the_good_one(gpus: str, complaint: str) -> None:
    comments = read(f'{{"h": {gpus}}}')
    assert [(entry.index, entry.name) for entry in comments.entries] == [(1, "ann")]
    assert [text.startswith(complaint) and ";" in text for text in told(comments)] == [True]


def test_hosts_that_are_no_hosts() -> None:
    comments = read(
        f'{{"": [{GOOD}], "a\\u202eb": [{GOOD}], "{"x" * 200}": [{GOOD}], "h": 7, "ok": [{GOOD}]}}'
    )
    assert [entry.host for entry in comments.entries] == ["ok"]
    assert [text.partition(": ")[2].partition(";")[0] for text in told(comments)] == [
        "is not a host name",
        "is not a host name",
        "is not a host name",
        "is neither a list nor a table of GPUs",
    ]


def test_a_host_that_stands_there_twice_is_told() -> None:
    comments = read(f'{{"h": [], "g": {{"0": {{}}}}, "h": [{GOOD}]}}')
    assert [entry.host for entry in comments.entries] == ["h"]
    assert told(comments) == ["h: is in the file twice; keep one, the last is used"]


def test_complaints_say_the_line_also_after_comments_and_in_tables() -> None:
    comments = read(
        '{ // hosts\n "h": [ /* of\n two lines */\n  {},\n  {"name": "}{\\"\n", "date": "3d"}],\n'
        ' "t": {\n  "0": {"name": "ann",\n   "date": "2026-12-01", "date": "2026-12-02"},\n  "x": 7},\n "u": 7}'
    )
    assert [(complaint.host, complaint.index, complaint.line) for complaint in comments.complaints] == [
        ("h", "1", 5),
        ("t", "0", 9),
        ("t", "x", 7),
        ("u", None, 11),
    ]
    assert [entry.line for entry in comments.entries] == [8]
    assert str(comments.complaints[0]).startswith("line 5: h:1: ")


def test_a_gpu_or_a_field_that_stands_there_twice_is_told() -> None:
    ann = '{"name": "ann", "date": "2026-12-01", "name": "eve"}'
    comments = read(f'{{"h": {{"0": {GOOD}, "1": {ann}, "0": {ann}}}, "g": [{GOOD}, {ann}]}}')
    assert [entry.index for entry in comments.entries] == [0, 1, 0, 1]
    assert told(comments) == [
        "h:0: is in the file twice; keep one, the last is used",
        "h:0: has name twice; keep one, the last is used",
        "h:1: has name twice; keep one, the last is used",
        "g:1: has name twice; keep one, the last is used",
    ]


def test_hostile_texts_are_one_line_and_plain() -> None:
    name = "a\x1b[31m\u202eb\nc"
    comments = read(json.dumps({"h": [{"name": name, "date": "2026-12-01", "comment": "x\t" * 9_000}]}))
    (entry,) = comments.entries
    assert entry.name == "a\ufffd[31m\ufffdb c"
    assert len(entry.comment) == 2000


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ('{"h": [{"name": "ann", "date": "2026', "line 1 is not JSON"),
        ('{"h": [\n{"name": "ann"}\n', "line 3 is not JSON"),
        ('{"h": [/* never closed', "is not JSON"),
        ("7", "is not a table of hosts"),
        ("[1]", "is not a table of hosts"),
        ("[" * 100_000, "nested too deeply"),
        ('{"h": ' + "9" * 5_000 + "}", "numbers that are too large"),
    ],
)
def test_no_such_file_at_all(text: str, part: str) -> None:
    with pytest.raises(Refused, match=part):
        read(text)


def test_a_huge_file_is_refused_before_it_is_read() -> None:
    with pytest.raises(Refused, match="larger than 4 MiB"):
        read(b" " * (MAX_FILE_BYTES + 1))


@pytest.mark.parametrize("piece", ["/*", "//", ", //", '"', ",\n", "\\", '{"a":'])
def test_hostile_files_take_no_more_time_than_their_size(piece: str) -> None:
    before = time.process_time()
    with pytest.raises(Refused):
        read("{" + piece * (1_000_000 // len(piece)))
    assert time.process_time() - before < 2.0


@given(st.binary(max_size=300) | st.text(alphabet='{}[]",:/*\\ \n0name', max_size=300).map(str.encode))
def test_nothing_but_refusal_comes_of_rubbish(content: bytes) -> None:
    try:
        comments = read(content)
    except Refused:
        return
    assert all(entry.name and entry.host for entry in comments.entries)


def test_what_is_written_is_plain_json_in_the_form_of_the_page() -> None:
    entry = CommentEntry(host="h", index=2, name="Noël", until=at(2026, 7, 1, 16) + 1, comment='a \\ " b')
    written = write_comments({"h": [entry], "idle": []}, PARIS)
    assert json.loads(written) == {
        "h": [
            {"name": "", "date": "", "comment": ""},
            {"name": "", "date": "", "comment": ""},
            {"name": "Noël", "date": "2026-07-01 18:01", "comment": 'a \\ " b'},
        ],
        "idle": [],
    }
    assert written.isascii()


@given(
    st.lists(
        st.builds(
            CommentEntry,
            host=st.sampled_from(["a", "b", "gpu07.example.org"]),
            index=st.integers(0, 19),
            name=st.text(min_size=1, max_size=20)
            .map(lambda text: "".join(text.split()) or "x")
            .filter(lambda text: text.isprintable()),
            until=st.integers(0, 7_258_118_400 // 60).map(lambda minutes: minutes * 60),
            comment=st.sampled_from(["", "x", 'quoted " // text', "[1, 2,]"]),
            line=st.none(),
        ),
        unique_by=lambda entry: (entry.host, entry.index),
    )
)
def test_what_was_written_is_read_again(entries: list[CommentEntry]) -> None:
    hosts: dict[str, list[CommentEntry]] = {}
    for entry in entries:
        hosts.setdefault(entry.host, []).append(entry)
    comments = read_comments(write_comments(hosts, UTC), UTC)
    assert comments.complaints == ()
    assert {structs.replace(entry, line=None) for entry in comments.entries} == set(entries)
