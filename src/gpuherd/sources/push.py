"""The hub's side of a link to an agent: hello → welcome → numbered frames → acknowledgements.

Independent of how the messages travel and of who dialled: a ``Channel`` carries them. One link per node; the newer one
wins. Frames are acknowledged only when they are saved (``acknowledge``), so that a node keeps whatever a crash could
lose. Beside its current run a link may carry an older one in ``past`` frames: history, which what is live does not wait
for.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterable, Mapping
from typing import Protocol

from msgspec import structs

from gpuherd.model.errors import Refused
from gpuherd.model.reports import Problem
from gpuherd.model.text import clip
from gpuherd.sources.frame_rate import TOO_MANY_FRAMES, FrameRate
from gpuherd.wire.codec import MAX_FRAME_BYTES, UnknownFrame, agent_decoder, encode
from gpuherd.wire.frames import (
    PACE_MINOR,
    PROTOCOL_MINOR,
    Ack,
    FactsFrame,
    FromAgent,
    Hello,
    Notice,
    Pace,
    PastFrames,
    SampleFrame,
    TableFrame,
    Welcome,
)

__all__ = ["Channel", "Intake", "Link", "NodeLinks", "NumberedRun"]

MAX_BAD_FRAMES = 20
"""A link is closed after this many refused frames in a row: its agent is broken and logs the notices."""
FLAPPING_REPLACEMENTS = 5
"""Replaced this often within the window, a node's credential is in use twice."""
FLAPPING_WINDOW_SECONDS = 120.0
GOODBYE_SECONDS = 2.0
"""How long the other side may take to hear why its link ends."""
BRAKE_SECONDS = 3.0
"""Longest pause in reading a link: a ping waits behind what is unread, and must not wait 5 s."""
BRAKE_SHARE = 0.2
"""Largest share of time that pauses may take in the long run."""
ASK_AGAIN_SECONDS = 10.0
"""The request for a longer interval is repeated every 10 s as a sign of life: an overloaded hub may read and answer a
ping too late."""
LONGEST_ASKED_SECONDS = 60.0
"""The longest interval that a node is asked for."""
LEAST_SILENCE_SECONDS = 60.0
NEVER_LIVE_SEQ = 2**62
"""Where the live frames of an older run begin: nowhere."""
FINAL_CODES = frozenset({"frame_too_large", "unknown_node", TOO_MANY_FRAMES})
"""Refusals that end the link at once."""

_REPLACED = Notice(
    code="replaced",
    message="this node has connected again from elsewhere; if that was not you, its credential is in use on two "
    "machines: enrol one of them again",
    is_final=True,
)
_REMOVED = Notice(
    code="removed", message="this node's credential is no longer valid; enrol it again", is_final=True
)
_SILENT = Notice(code="silent", message="no data for too long; connect again")
_SEND_AGAIN = Notice(
    code="send_again",
    message=(
        "the hub had no space for the last frames; connect again and send the frames that were not "
        "acknowledged"
    ),
)
_STOPPING = Notice(code="stopping", message="the hub is stopping; connect again")


class Channel(Protocol):
    """Whole messages to and from one node."""

    async def receive(self) -> bytes | None:
        """Wait for the next message; none when the other side is gone."""

    def post(self, message: bytes) -> bool:
        """Start sending without waiting; false if the previous message is still on its way."""

    async def send(self, message: bytes) -> None:
        """Send and wait until it is handed over."""

    async def close(self, code: int, reason: str) -> None:
        """Close; harmless when it is closed already."""


class NumberedRun(Protocol):
    """One run of numbered frames of one node, as the fleet keeps it."""

    @property
    def boot_id(self) -> str:
        """The agent's run that numbered the frames."""

    @property
    def resume_after_seq(self) -> int:
        """The highest number taken before this link, -1 for none."""

    def refuse(self, error: Refused) -> None:
        """Count a message that could not even be decoded."""

    def expect_every(self, interval_seconds: float) -> None:
        """Expect samples at another interval, because the node was asked for it."""

    def accept(self, frame: FactsFrame | TableFrame | SampleFrame | UnknownFrame, message: bytes) -> None:
        """Take a frame, or ignore one that was taken before; ``Refused`` if it cannot be used."""


class Intake(Protocol):
    """What a source needs of the fleet."""

    def open_run(self, node_id: str, hello: Hello, *, asked_at: float | None = None) -> NumberedRun:
        """Begin or go on with a run; ``Refused`` if the node is not enrolled.

        ``asked_at``: monotonic time at which the hub sent what the node waited for before its hello.
        """

    def refuse(self, node_id: str, error: Refused) -> None:
        """Count against the node what came before any run was open."""


class Brake:
    """Limits the pauses in reading one link, so that a ping behind unread frames does not wait too long."""

    __slots__ = ("_filled_at", "_left")

    def __init__(self, now: float) -> None:
        self._filled_at = now
        self._left = BRAKE_SECONDS

    def put_off(self, seconds: float, now: float) -> float:
        """Return how much of the wanted pause is allowed now."""
        self._left = min(self._left + (now - self._filled_at) * BRAKE_SHARE, BRAKE_SECONDS)
        self._filled_at = now
        allowed = min(seconds, self._left)
        self._left -= allowed
        return allowed


class Link:
    """One open connection of one node."""

    def __init__(
        self,
        node_id: str,
        channel: Channel,
        opened_at: float,
        interval_seconds: float | None = None,
        asked_at: float | None = None,
    ) -> None:
        self.node_id = node_id
        self.channel = channel
        self.interval_seconds = interval_seconds
        self.opened_at = opened_at
        self.asked_at = asked_at
        """When the hub sent what the next hello answers: its part of the handshake, later its last welcome."""
        self.frames = 0
        self.frames_at_last_sweep = -1
        self.silent_since = opened_at
        self.silence_allowed_seconds = 15.0
        self.brake = Brake(opened_at)
        self.run: NumberedRun | None = None
        self.usual_interval_seconds = 1.0
        self.asked_interval_seconds: float | None = None
        """The interval that the node was asked for because of overload; None: it was not asked."""
        self.paced_at = opened_at
        self.follows_pace = False
        self.live_from_seq = 0
        self.acked_seq = -1
        self.past: NumberedRun | None = None
        self.past_acked_seq = -1
        self.is_past_next = False
        self.ending: Notice | None = None
        self.reading: asyncio.Task[object] | None = None
        self.is_done = asyncio.Event()


class NodeLinks:
    """All links. Every method runs on the event loop that owns the fleet."""

    def __init__(
        self,
        intake: Intake,
        *,
        monotonic: Callable[[], float],
        note: Callable[[str, str, Problem | None], None] = lambda *_: None,
        past_pause_seconds: Callable[[], float] = lambda: 0.0,
    ) -> None:
        """``note`` shows on a node what the hub has to say of it: (node id, subject, problem).

        ``past_pause_seconds``: how long to wait before more history is read; it is taken no faster than it is kept.
        """
        self._intake = intake
        self._note = note
        self._past_pause_seconds = past_pause_seconds
        self.monotonic = monotonic
        self._decode = agent_decoder().decode
        self._links: dict[str, Link] = {}
        self._saved: dict[str, Mapping[str, int]] = {}
        self._replacements: dict[str, list[float]] = {}
        self._rates: dict[str, FrameRate] = {}
        self._stretch = 1.0
        self.replaced = 0

    @property
    def open_count(self) -> int:
        """Links open now."""
        return len(self._links)

    def flapping(self) -> tuple[str, ...]:
        """Nodes whose links keep replacing each other: a disk was cloned, or a credential copied."""
        since = self.monotonic() - FLAPPING_WINDOW_SECONDS
        return tuple(
            sorted(
                node_id
                for node_id, times in self._replacements.items()
                if len(times) >= FLAPPING_REPLACEMENTS and times[-FLAPPING_REPLACEMENTS] > since
            )
        )

    async def serve(
        self,
        node_id: str,
        channel: Channel,
        *,
        interval_seconds: float | None = None,
        asked_at: float | None = None,
    ) -> Notice | None:
        """Run one node's link until it ends; gives why the hub ended it, none when the other side is gone.

        The node's id comes from its credential, never from its frames. ``interval_seconds`` is the pace to ask for.
        ``asked_at``: just before the hub sent its part of the handshake, by the monotonic clock.
        """
        link = Link(node_id, channel, self.monotonic(), interval_seconds, asked_at)
        older = self._links.get(node_id)
        self._links[node_id] = link
        if older is not None:
            self._note_replacement(node_id)
            self._end(older, _REPLACED)
        reading = link.reading = asyncio.current_task()
        try:
            try:
                await self._read(link)
            except asyncio.CancelledError:
                # Our own doing when a link is ended (see _end); anyone else's goes through.
                if link.ending is None or reading is None or reading.uncancel() > 0:
                    raise
            finally:
                if self._links.get(node_id) is link:
                    del self._links[node_id]
            if link.ending is not None:
                await self._say_goodbye(link, link.ending)
        finally:
            link.is_done.set()  # whatever happened: close_all waits for it
        return link.ending

    async def _read(self, link: Link) -> None:
        channel, decode = link.channel, self._decode
        rate = self._rate(link.node_id)
        bad_frames = 0
        while link.ending is None:
            message = await channel.receive()
            if message is None:
                return
            link.frames += 1
            run, frame = link.run, None
            try:
                try:
                    frame = decode(message)
                finally:
                    # Counted whatever it is; the time it took to decode is spent.
                    pause_seconds = self._count(link, rate, frame, len(message))
                if pause_seconds:
                    await asyncio.sleep(pause_seconds)
                if run is None or isinstance(frame, Hello):
                    await self._open_run(link, frame)
                elif isinstance(frame, PastFrames):
                    self._take_past(link, run, frame)
                    bad_frames = 0
                else:
                    run.accept(frame, message)
                    bad_frames = 0
            except Refused as refusal:
                bad_frames += 1
                if run is None:
                    self._intake.refuse(link.node_id, refusal)
                elif frame is None or refusal.code == TOO_MANY_FRAMES:
                    run.refuse(refusal)
                if refusal.code == TOO_MANY_FRAMES:
                    self._note_flood(link.node_id, refusal)
                notice = Notice(
                    code=refusal.code,
                    message=clip(str(refusal), 512),
                    seq=getattr(frame, "seq", None),
                    is_final=link.run is None or bad_frames >= MAX_BAD_FRAMES or refusal.code in FINAL_CODES,
                )
                if notice.is_final:
                    link.ending = notice
                else:
                    await channel.send(encode(notice))

    def _count(
        self, link: Link, rate: FrameRate, frame: FromAgent | UnknownFrame | None, size_bytes: int
    ) -> float:
        """Count a message; gives how long to wait before the next is read, ``Refused`` if it is one of a flood."""
        seq = getattr(frame, "seq", None)
        if isinstance(frame, PastFrames) or (seq is not None and seq < link.live_from_seq):
            frames = len(frame.frames) if isinstance(frame, PastFrames) else 1
            now = self.monotonic()
            pause_seconds = rate.take_past(frames, size_bytes, now)
            return max(pause_seconds, link.brake.put_off(self._past_pause_seconds(), now))
        rate.take_live(size_bytes, self.monotonic())
        return 0.0

    def _rate(self, node_id: str) -> FrameRate:
        return self._rates.setdefault(node_id, FrameRate(self.monotonic()))

    def _note_flood(self, node_id: str, refusal: Refused) -> None:
        self._note(node_id, "contact", Problem(code=refusal.code, message=clip(str(refusal), 512)))

    def count_report(self, node_id: str, size_bytes: int) -> None:
        """Count a report that came by HTTP; ``Refused`` ``too_many_frames`` if the node sends too many."""
        try:
            self._rate(node_id).take_live(size_bytes, self.monotonic())
        except Refused as refusal:
            self._intake.refuse(node_id, refusal)
            self._note_flood(node_id, refusal)
            raise

    async def _open_run(self, link: Link, hello: FromAgent | UnknownFrame) -> None:
        if not isinstance(hello, Hello):
            raise Refused("hello_missing", "the first frame must be a hello")
        if link.interval_seconds is not None:
            # The pace that holds from the welcome on; by the one before, a slower node would soon be called stale.
            hello = structs.replace(hello, interval_seconds=link.interval_seconds)
        run = self._intake.open_run(link.node_id, hello, asked_at=link.asked_at)
        # Only what is saved may be forgotten by the node. Frames taken but not yet saved are sent again and ignored.
        resume_after_seq = min(run.resume_after_seq, self._saved_seq(link.node_id, run.boot_id))
        link.run = run
        link.live_from_seq = hello.live_from_seq
        link.acked_seq = resume_after_seq
        if link.past is not None and link.past.boot_id == run.boot_id:
            link.past = None
        link.silence_allowed_seconds = max(LEAST_SILENCE_SECONDS, 10 * hello.interval_seconds)
        link.usual_interval_seconds = hello.interval_seconds
        link.follows_pace = hello.protocol_minor >= PACE_MINOR
        if link.asked_interval_seconds is not None:  # the node keeps the interval that it was asked for
            run.expect_every(link.asked_interval_seconds)
        welcome = Welcome(
            node_id=link.node_id,
            resume_after_seq=resume_after_seq,
            # While nothing can be saved, what is live must not queue up behind what we have already.
            received_seq=max(run.resume_after_seq, resume_after_seq),
            interval_seconds=link.interval_seconds,
            protocol_minor=PROTOCOL_MINOR,
        )
        link.asked_at = self.monotonic()
        await link.channel.send(encode(welcome))

    def _take_past(self, link: Link, run: NumberedRun, past: PastFrames) -> None:
        """Take frames of an older run; the first refusal is told when all of them were looked at."""
        refusal: Refused | None = None
        for message in past.frames:
            try:
                self._take_past_frame(link, run, message)
            except Refused as refused:
                refusal = refusal or refused
        if refusal is not None:
            raise refusal

    def _take_past_frame(self, link: Link, run: NumberedRun, message: bytes) -> None:
        try:
            frame = self._decode(message)
            if isinstance(frame, PastFrames) or (link.past is None and not isinstance(frame, Hello)):
                raise Refused("hello_missing", "past frames must start with a hello of their run")  # noqa: TRY301
        except Refused as refused:
            run.refuse(refused)
            raise
        if isinstance(frame, Hello):
            self._open_past(link, run, frame)
        elif link.past is not None:
            link.past.accept(frame, message)

    def _open_past(self, link: Link, run: NumberedRun, hello: Hello) -> None:
        link.past = None
        if hello.boot_id == run.boot_id:
            raise Refused("past_is_current", "the current run cannot be sent as a past one")
        link.past = self._intake.open_run(
            link.node_id, structs.replace(hello, live_from_seq=NEVER_LIVE_SEQ), asked_at=link.asked_at
        )
        link.past_acked_seq = -1  # so that it is told at once what was saved of it before

    def _saved_seq(self, node_id: str, boot_id: str) -> int:
        return self._saved.get(node_id, {}).get(boot_id, -1)

    def note_saved(self, saved: Iterable[tuple[str, Mapping[str, int]]]) -> None:
        """Take (node id, highest saved number of each run) as durable and acknowledge it on the open links."""
        links = self._links
        for node_id, runs in saved:
            self._saved[node_id] = runs
            link = links.get(node_id)
            if link is not None:
                self._acknowledge(link)

    def _acknowledge(self, link: Link) -> None:
        if link.ending is not None:
            return
        # A channel takes one message at a time: where both runs have news, they take turns.
        for is_past in (link.is_past_next, not link.is_past_next):
            run, acked_seq = (link.past, link.past_acked_seq) if is_past else (link.run, link.acked_seq)
            if run is None:
                continue
            seq = self._saved_seq(link.node_id, run.boot_id)
            ack = Ack(seq=seq, boot_id=run.boot_id if is_past else None) if seq > acked_seq else None
            if ack is not None and link.channel.post(encode(ack)):
                link.is_past_next = not is_past
                if is_past:
                    link.past_acked_seq = seq
                else:
                    link.acked_seq = seq

    def set_stretch(self, stretch: float) -> None:
        """Ask all nodes that understand it for their usual interval times ``stretch``. Called every half second."""
        self._stretch = stretch
        for link in self._links.values():
            if link.follows_pace and link.ending is None:
                self._ask_pace(link)

    def _ask_pace(self, link: Link) -> None:
        usual = link.usual_interval_seconds
        wanted = min(usual * self._stretch, max(usual, LONGEST_ASKED_SECONDS))
        asked = wanted if wanted > usual else None
        now, is_new = self.monotonic(), asked != link.asked_interval_seconds
        is_due = is_new or (asked is not None and now - link.paced_at >= ASK_AGAIN_SECONDS)
        # If the channel is busy, the next round asks.
        if not is_due or link.run is None or not link.channel.post(encode(Pace(interval_seconds=asked))):
            return
        link.asked_interval_seconds, link.paced_at = asked, now
        if not is_new:
            return
        link.silence_allowed_seconds = max(LEAST_SILENCE_SECONDS, 10 * wanted)
        link.run.expect_every(wanted)

    @property
    def asked_count(self) -> int:
        """Number of links whose nodes are asked for a longer interval."""
        return sum(link.asked_interval_seconds is not None for link in self._links.values())

    def sweep(self) -> None:
        """Close links that have gone silent and retry acknowledgements that could not be sent. Every few seconds."""
        now = self.monotonic()
        for link in list(self._links.values()):
            self._acknowledge(link)
            if link.frames != link.frames_at_last_sweep:
                link.frames_at_last_sweep = link.frames
                link.silent_since = now
            elif now - link.silent_since > link.silence_allowed_seconds:
                self._end(link, _SILENT)

    def close_node(self, node_id: str) -> None:
        """Close the link of a node whose credential is no longer valid."""
        link = self._links.get(node_id)
        if link is not None:
            self._end(link, _REMOVED)

    def refuse_unfinished(self, node_id: str, channel: Channel) -> None:
        """Close a link with an unfinished message that is larger than any message may be."""
        link = self._links.get(node_id)
        if link is None or link.channel is not channel or link.ending is not None:
            return
        refusal = Refused(
            "frame_too_large", f"an unfinished message is over the limit of {MAX_FRAME_BYTES} bytes"
        )
        self._intake.refuse(node_id, refusal)
        self._end(link, Notice(code=refusal.code, message=str(refusal), is_final=True))

    def send_again(self, node_id: str) -> None:
        """Close the link of a node so that it comes back and sends what was not acknowledged."""
        link = self._links.get(node_id)
        if link is not None:
            self._end(link, _SEND_AGAIN)

    def forget_node(self, node_id: str) -> None:
        """Forget the numbers of a node that was removed."""
        self._saved.pop(node_id, None)
        self._replacements.pop(node_id, None)
        self._rates.pop(node_id, None)

    async def close_all(self) -> None:
        """Say goodbye to every node: the hub is stopping and they should connect again."""
        links = list(self._links.values())
        for link in links:
            self._end(link, _STOPPING)
        await asyncio.gather(*(link.is_done.wait() for link in links))

    def _end(self, link: Link, notice: Notice) -> None:
        """End a link without waiting for it: its other side may be dead, or slow on purpose.

        Whoever reads the link closes it: a server may not be able to close what is being read.
        """
        if link.ending is None:
            link.ending = notice
            if link.reading is not None:
                link.reading.cancel()

    async def _say_goodbye(self, link: Link, notice: Notice) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(GOODBYE_SECONDS):
                if notice is not _STOPPING:
                    await link.channel.send(encode(notice))
                await link.channel.close(1001 if notice is _STOPPING else 4000, notice.code)

    def _note_replacement(self, node_id: str) -> None:
        self.replaced += 1
        times = self._replacements.setdefault(node_id, [])
        times.append(self.monotonic())
        del times[:-FLAPPING_REPLACEMENTS]
