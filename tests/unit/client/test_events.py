"""Server-sent events, in whatever pieces they come."""

from __future__ import annotations

import zlib

import pytest

from gpuherd.client.errors import HubSilent
from gpuherd.client.events import Event, EventReader

STREAM = b": still here\n\nevent: snapshot\nid: 4\ndata: {}\n\nevent: own\ndata: a\ndata: b\n\ndata: plain\n\nevent: "
EVENTS = [Event("snapshot", b"{}"), Event("own", b"a\nb"), Event("message", b"plain")]


@pytest.mark.parametrize("step", [1, 2, 7, 1000])
@pytest.mark.parametrize("is_gzip", [False, True])
def test_events_are_whole_however_they_are_cut(step: int, is_gzip: bool) -> None:
    sent = STREAM
    if is_gzip:
        packer = zlib.compressobj(wbits=31)
        sent = packer.compress(STREAM) + packer.flush(zlib.Z_FULL_FLUSH)
    reader = EventReader(is_gzip=is_gzip)
    came = [event for start in range(0, len(sent), step) for event in reader.feed(sent[start : start + step])]
    assert came == EVENTS


def test_an_event_without_end_is_not_waited_for() -> None:
    reader = EventReader(is_gzip=False, most_bytes=1000)
    with pytest.raises(HubSilent, match="event of more than"):
        list(reader.feed(b"data: " + b"x" * 1001))


def test_a_little_that_unpacks_to_a_lot_is_noticed_early() -> None:
    packer = zlib.compressobj(wbits=31)
    bomb = packer.compress(b"data: " + b"x" * 50_000_000) + packer.flush()
    reader = EventReader(is_gzip=True, most_bytes=5_000_000)
    with pytest.raises(HubSilent, match="event of more than"):
        list(reader.feed(bomb))
    assert len(reader._kept) < 10_000_000


def test_what_is_no_gzip_is_damaged() -> None:
    with pytest.raises(HubSilent, match="damaged"):
        list(EventReader(is_gzip=True).feed(b"<html>no"))
