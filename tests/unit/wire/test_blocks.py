"""Rounds come out of a channel's bytes however they are cut, and bad bytes give a refusal and nothing else."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuherd.model.errors import Refused
from gpuherd.wire.blocks import (
    COMMAND,
    MAX_BANNER_BYTES,
    MAX_BLOCKS,
    MAX_ROUND_BYTES,
    Block,
    BlockReader,
    Round,
    start_message,
)

TOKEN = "0123456789abcdef" * 2
START = f"\n@{TOKEN} start 1\n".encode()


def mark(words: str) -> bytes:
    return f"\n@{TOKEN} {words}\n".encode()


def printed(number: int, *blocks: tuple[str, int, bytes]) -> bytes:
    content = b"".join(text + mark(f"block {name} {status}") for name, status, text in blocks)
    return mark(f"round {number}") + content + mark(f"end {number}")


def read(chunks: list[bytes]) -> tuple[list[Round], str | None]:
    reader = BlockReader(TOKEN)
    rounds: list[Round] = []
    try:
        for chunk in [*chunks, b"", b""]:
            rounds += reader.feed(chunk)
    except Refused as refusal:
        return rounds, refusal.code
    return rounds, None


def test_content_keeps_every_byte() -> None:
    contents = (b"", b"\n", b"no end of line", b"one\n\ntwo\n", b"\0\xff\x1b[31m\r\n", b"@" + TOKEN.encode())
    blocks = tuple((f"b{place}", place, content) for place, content in enumerate(contents))
    rounds, refused = read([b"Welcome!\r\nno end" + START + printed(7, *blocks)])
    assert refused is None
    assert rounds == [Round(7, {name: Block(name, status, text) for name, status, text in blocks})]


def test_a_channel_that_starts_without_banner_and_is_silent_for_long() -> None:
    reader = BlockReader(TOKEN)
    assert reader.feed(START[1:-1]) == []
    assert not reader.has_started
    reader.feed(b"\n")
    assert (reader.has_started, reader.script_version) == (True, "1")
    assert reader.feed(mark("alive") * 1000) == []
    assert [round_.number for round_ in reader.feed(printed(1) + mark("alive") + printed(2))] == [1, 2]


words = st.sampled_from(
    [START, mark("round 1"), mark("end 1"), mark("alive"), mark("block a 0"), mark("block b 124")]
)
junk = st.one_of(
    st.binary(max_size=40),
    st.sampled_from([f"\n@{TOKEN} ".encode(), f"\n@{TOKEN[:-1]}0 end 1\n".encode(), b"\n", b"\n@", b"@"]),
    st.sampled_from(["start 2", "block a 0 0", "block A 1", "end", "round x", ""]).map(mark),
    st.just(b"gpuherd-ssh refused no_timeout\n"),
)


@given(st.lists(st.one_of(words, junk), max_size=25), st.data())
@settings(max_examples=400, deadline=None)
def test_any_bytes_in_any_pieces(parts: list[bytes], draw: st.DataObject) -> None:
    content = b"".join(parts)
    cuts = sorted(draw.draw(st.lists(st.integers(0, len(content)), max_size=8)))
    pieces = [content[a:b] for a, b in zip([0, *cuts], [*cuts, len(content)], strict=True)]
    whole = read([content])
    assert read(pieces) == whole
    assert read([content[at : at + 1] for at in range(len(content))]) == whole
    assert whole[1] in (None, "garbled", "too_large", "refused")


@given(
    st.lists(
        st.dictionaries(st.from_regex(r"[a-z0-9_.-]{1,12}", fullmatch=True), st.binary(max_size=50)),
        max_size=4,
    ),
    st.integers(1, 60),
)
@settings(deadline=None)
def test_what_was_printed_is_what_is_read(rounds: list[dict[str, bytes]], size: int) -> None:
    content = START + b"".join(
        printed(number, *((name, 0, text) for name, text in blocks.items()))
        for number, blocks in enumerate(rounds)
    )
    read_rounds, refused = read([content[at : at + size] for at in range(0, len(content), size)])
    assert refused is None
    assert [{name: block.content for name, block in got.blocks.items()} for got in read_rounds] == rounds


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (b"motd\n" * MAX_BANNER_BYTES, "garbled"),
        (b"x" * (MAX_BANNER_BYTES + 1), "garbled"),
        (b"motd\ngpuherd-ssh refused no_timeout\n", "refused"),
        (START + mark("round 1") + b"x" * (MAX_ROUND_BYTES + 1), "too_large"),
        (START + b"x" * (MAX_ROUND_BYTES + 1), "too_large"),
        (START + printed(1, *((f"b{n}", 0, b"") for n in range(MAX_BLOCKS + 1))), "too_large"),
        (START + printed(1, ("a", 0, b""), ("a", 0, b"")), "garbled"),
        (START + mark("round 1") + mark("end 2"), "garbled"),
        (START + mark("block a 0"), "garbled"),
        (START + START, "garbled"),
        (mark("round 1"), "garbled"),
        (START + mark("round 1") + f"\n@{TOKEN} ".encode() + b"x" * 300, "garbled"),
    ],
)
def test_refusals(content: bytes, code: str) -> None:
    reader = BlockReader(TOKEN)
    with pytest.raises(Refused) as caught:
        reader.feed(content)
    assert caught.value.code == code
    assert "\n" not in str(caught.value)
    with pytest.raises(Refused, match=str(caught.value)[:20]):
        reader.feed(START)


def test_a_good_round_before_bad_bytes_is_not_lost() -> None:
    reader = BlockReader(TOKEN)
    assert len(reader.feed(START + printed(1) + mark("nonsense"))) == 1
    with pytest.raises(Refused, match="nonsense"):
        reader.feed(b"")


def test_time_is_linear_in_small_pieces() -> None:
    """A megabyte byte by byte takes as long per byte as a quarter of it."""

    def seconds(size: int) -> float:
        reader = BlockReader(TOKEN)
        reader.feed(START + mark("round 1"))
        begin = time.thread_time()
        for _ in range(size):
            reader.feed(b"\n")
        return time.thread_time() - begin

    small = min(seconds(50_000) for _ in range(3))
    assert min(seconds(200_000) for _ in range(2)) < small * 4 * 3


def test_the_message_that_starts_a_channel() -> None:
    message = start_message(
        TOKEN, interval_seconds=0.25, deadline_seconds=3600, command_lines="none", script=b"echo\n"
    )
    assert message == f"gpuherd-ssh 1 {TOKEN} 0.25 3600 none\n5\necho\n".encode()
    assert "\n" not in COMMAND
    for bad in ("", "z" * 32, TOKEN + "0", TOKEN.upper()):
        with pytest.raises(ValueError, match="token"):
            start_message(bad, interval_seconds=1, deadline_seconds=1, command_lines="none", script=b"")
        with pytest.raises(ValueError, match="token"):
            BlockReader(bad)
    with pytest.raises(ValueError, match="command_lines"):
        start_message(TOKEN, interval_seconds=1, deadline_seconds=1, command_lines="all", script=b"")


@given(st.lists(st.one_of(words, junk), max_size=25))
@settings(max_examples=400, deadline=None)
def test_a_chunk_of_whole_rounds_is_read_like_its_bytes(parts: list[bytes]) -> None:
    content = mark("alive") + b"".join(parts) + b"\n"
    assert read([START, content]) == read([START, *(content[at : at + 1] for at in range(len(content)))])
    assert read([START, content, content]) == read([START + content + content])
