"""Many nodes that keep what is not acknowledged, dial again when a link ends and give up a hub that answers no ping.

Run as ``python -m bench.overload_nodes``: reads a JSON ``Herd`` from standard input, prints ``ready`` when all links
are welcomed, sends until standard input ends, and prints a JSON ``Seen``. One process speaks for thousands of nodes,
each as gpuherd's agent does: a ping every 15 s, the link dropped if nothing was heard until the next one, frames
kept until they are acknowledged, and a longer interval if the hub asks for it (unless ``follows_pace`` is false, as
agents before 1.2).
"""

from __future__ import annotations

import heapq
import os
import random
import select
import socket
import struct
import sys
import time
from collections import deque

import msgspec

from bench.nodes import FIRST_SEQ, VARIANTS, Load, Script, connect, masked
from gpuherd.wire.codec import encode, hub_decoder
from gpuherd.wire.frames import (
    PACE_MINOR,
    PAST_MINOR,
    Ack,
    FactsFrame,
    Hello,
    Notice,
    Pace,
    TableFrame,
    Welcome,
)
from gpuherd.wire.matrix import LAYOUT

__all__ = ["Herd", "Seen"]

PING = bytes([0x89, 0x80, 0, 0, 0, 0])
PONG, CLOSE, BINARY = 0x8A, 0x88, 0x82
PING_SECONDS = 15.0
SHORT_BACKLOG = 64
LINGER_SECONDS = 3.0


class Herd(msgspec.Struct, frozen=True, kw_only=True):
    """What to do."""

    host: str
    port: int
    path: str
    credentials: list[str]
    gpus: int = 8
    interval_seconds: float = 1.0
    follows_pace: bool = True


class Seen(msgspec.Struct, frozen=True, kw_only=True):
    """What was seen from the nodes' side."""

    samples: int
    closed_by_hub: int
    dropped_by_nodes: int
    """Links that nodes gave up because no pong came."""
    connects: int
    pong_worst_seconds: float
    pong_p99_seconds: float
    ack_p50_seconds: float
    ack_p99_seconds: float
    ack_worst_seconds: float
    unacked: int
    longest_interval_seconds: float
    notices: dict[str, int]


class Node:
    """One node: its link, and the times of the frames that are not acknowledged."""

    __slots__ = (
        "boot_id",
        "credential",
        "data",
        "heard_at",
        "interval",
        "kept",
        "link",
        "out",
        "ping_at",
        "pinged_at",
        "place",
        "sent",
        "seq",
        "tries",
        "turn",
    )  # fmt: skip

    def __init__(self, place: int, credential: str, interval: float) -> None:
        self.place, self.credential, self.interval = place, credential, interval
        self.boot_id = os.urandom(8).hex()
        self.link: socket.socket | None = None
        self.data = b""
        self.out = b""
        self.seq = self.sent = FIRST_SEQ
        self.kept: deque[tuple[int, float, float]] = deque()
        """(number, node's time, when it was first sent or 0) of each frame without an ack."""
        self.ping_at = self.pinged_at = self.heard_at = 0.0
        self.tries = 0
        self.turn = 0


class Player:
    """Plays all nodes in one loop."""

    def __init__(self, herd: Herd) -> None:
        self._herd = herd
        self._load = Load(host=herd.host, port=herd.port, path=herd.path, credentials=[])
        self._script = Script(herd.gpus)
        facts = FactsFrame(seq=FIRST_SEQ - 2, revision=1, facts=self._script.facts)
        table = TableFrame(seq=FIRST_SEQ - 1, revision=1, facts_revision=1, table=self._script.table)
        self._context = masked(encode(facts)) + masked(encode(table))
        self._nodes = [Node(*item, herd.interval_seconds) for item in enumerate(herd.credentials)]
        self._by_number: dict[int, Node] = {}
        self._poll = select.epoll()
        self._due: list[tuple[float, int, int, int]] = []
        self._decode = hub_decoder().decode
        self._ack_ages: list[float] = []
        self._pong_ages: list[float] = []
        self._notices: dict[str, int] = {}
        self._samples = self._closed = self._dropped = self._connects = 0
        self._longest = herd.interval_seconds

    # -- links -------------------------------------------------------------------------------------------------

    def open(self, node: Node) -> None:
        """Dial and say hello; facts and table follow the welcome."""
        self._connects += 1
        link = connect(self._load, node.credential)
        link.setblocking(False)
        node.link, node.data, node.out = link, b"", b""
        node.interval = self._herd.interval_seconds
        now = time.monotonic()
        node.heard_at, node.pinged_at, node.ping_at = now, 0.0, now + PING_SECONDS * random.random()  # noqa: S311
        node.sent = -1  # until the welcome says what the hub has
        hello = Hello(
            boot_id=node.boot_id,
            layout=LAYOUT,
            time=time.time(),
            interval_seconds=self._herd.interval_seconds,
            live_from_seq=node.seq,
            protocol_minor=PACE_MINOR if self._herd.follows_pace else PAST_MINOR,
        )
        node.out += masked(encode(hello))
        self._by_number[link.fileno()] = node
        self._poll.register(link.fileno(), select.EPOLLIN)
        self._flush(node)

    def _end(self, node: Node, *, by_hub: bool) -> None:
        if node.link is None:
            return
        number = node.link.fileno()
        self._poll.unregister(number)
        del self._by_number[number]
        node.link.close()
        node.link = None
        self._closed += by_hub
        self._dropped += not by_hub
        node.tries += 1
        wait = random.random() * min(2.0 ** (node.tries - 1), 60.0)  # noqa: S311
        self._at(time.monotonic() + wait, node, 1)

    def _at(self, moment: float, node: Node, what: int) -> None:
        if what == 0:
            node.turn += 1
        heapq.heappush(self._due, (moment, node.place, what, node.turn))

    # -- sending -----------------------------------------------------------------------------------------------

    def _sample(self, node: Node, now: float) -> None:
        node.kept.append((node.seq, time.time(), 0.0))
        node.seq += 1
        self._samples += 1
        if node.link is not None and node.sent < node.seq and not node.out:
            self._send_kept(node, now)

    def _send_kept(self, node: Node, now: float) -> None:
        """Put the frames after the last one sent into the buffer, some at a time."""
        if node.sent < 0:
            return
        first = node.kept[0][0] if node.kept else node.seq
        parts = []
        for place in range(max(0, node.sent - first), min(len(node.kept), node.sent - first + SHORT_BACKLOG)):
            seq, at, sent = node.kept[place]
            message = self._script.samples[seq % VARIANTS]
            struct.pack_into(">I", message, self._script.seq_offset, seq)
            struct.pack_into(">d", message, self._script.time_offset, at)
            parts.append(bytes(message))
            node.kept[place] = (seq, at, sent or now)
            node.sent = seq + 1
        node.out += b"".join(parts)
        self._flush(node)

    def _flush(self, node: Node) -> None:
        if node.link is None or not node.out:
            return
        try:
            sent = node.link.send(node.out)
        except BlockingIOError:
            sent = 0
        except OSError:
            self._end(node, by_hub=True)
            return
        node.out = node.out[sent:]
        self._poll.modify(node.link.fileno(), select.EPOLLIN | (select.EPOLLOUT if node.out else 0))

    def _ping(self, node: Node, now: float) -> None:
        if node.pinged_at > node.heard_at:
            self._pong_ages.append(now - node.pinged_at)
            self._end(node, by_hub=False)
            return
        node.pinged_at, node.ping_at = now, now + PING_SECONDS
        node.out += PING
        self._flush(node)

    # -- hearing -----------------------------------------------------------------------------------------------

    def _hear(self, node: Node) -> None:
        assert node.link is not None
        try:
            data = node.link.recv(65_536)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._end(node, by_hub=True)
            return
        now = time.monotonic()
        node.data += data
        while len(node.data) >= 2:
            head, length = node.data[0], node.data[1] & 0x7F
            start = 2
            if length == 126:
                if len(node.data) < 4:
                    return
                length, start = int.from_bytes(node.data[2:4], "big"), 4
            if len(node.data) < start + length:
                return
            body, node.data = node.data[start : start + length], node.data[start + length :]
            if head == PONG:
                self._pong_ages.append(now - node.pinged_at)
                node.heard_at = now
            elif head == CLOSE:
                self._end(node, by_hub=True)
                return
            elif head == BINARY:
                self._take(node, body, now)
                if self._herd.follows_pace:  # agents before 1.2 count pongs alone
                    node.heard_at = now

    def _take(self, node: Node, body: bytes, now: float) -> None:
        frame = self._decode(body)
        if isinstance(frame, Ack):
            while node.kept and node.kept[0][0] <= frame.seq:
                _, _, sent = node.kept.popleft()
                self._ack_ages.append(now - sent)
        elif isinstance(frame, Welcome):
            node.tries = 0
            while node.kept and node.kept[0][0] <= frame.resume_after_seq:
                node.kept.popleft()
            node.sent = max(frame.resume_after_seq, frame.received_seq, FIRST_SEQ - 1) + 1
            node.out += self._context
            self._send_kept(node, now)
        elif isinstance(frame, Pace):
            node.interval = frame.interval_seconds or self._herd.interval_seconds
            self._longest = max(self._longest, node.interval)
            self._at(now + node.interval * random.random(), node, 0)  # noqa: S311
        elif isinstance(frame, Notice):
            self._notices[frame.code] = self._notices.get(frame.code, 0) + 1

    # -- the loop ----------------------------------------------------------------------------------------------

    def run(self) -> Seen:
        """Dial all, then play until standard input ends."""
        for node in self._nodes:
            self.open(node)
            self._serve(0.0)
        print("ready", flush=True)
        start = time.monotonic()
        for node in self._nodes:
            self._at(start + node.interval * node.place / len(self._nodes), node, 0)
            self._at(start + PING_SECONDS * node.place / len(self._nodes), node, 2)
        stdin = sys.stdin.fileno()
        self._poll.register(stdin, select.EPOLLIN | select.EPOLLHUP)
        ends_at = float("inf")
        while time.monotonic() < ends_at:
            if self._serve(self._turns(is_ending=ends_at < float("inf"))):
                self._poll.unregister(stdin)
                ends_at = time.monotonic() + LINGER_SECONDS
        return self._told()

    def _turns(self, *, is_ending: bool) -> float:
        """Do what is due; return how long there is nothing to do."""
        while self._due and self._due[0][0] <= (now := time.monotonic()):
            moment, place, what, turn = heapq.heappop(self._due)
            node = self._nodes[place]
            if what == 0 and turn == node.turn and not is_ending:
                self._sample(node, now)
                self._at(moment + node.interval, node, 0)
            elif what == 1:
                try:
                    self.open(node)
                except (OSError, SystemExit):
                    node.tries += 1
                    self._at(now + random.random() * min(2.0**node.tries, 60.0), node, 1)  # noqa: S311
            elif what == 2:
                if node.link is not None and now >= node.ping_at:
                    self._ping(node, now)
                self._at(now + 1.0, node, 2)
        return max(0.0, min(0.05, self._due[0][0] - time.monotonic())) if self._due else 0.05

    def _serve(self, timeout: float) -> bool:
        """Read and write what can be; return whether standard input has ended."""
        has_ended = False
        for number, event in self._poll.poll(timeout):
            node = self._by_number.get(number)
            if node is None:
                has_ended = True
                continue
            if event & (select.EPOLLIN | select.EPOLLHUP | select.EPOLLERR):
                self._hear(node)
            if event & select.EPOLLOUT and node.link is not None:
                self._flush(node)
            if node.link is not None and not node.out and node.sent < node.seq and node.kept:
                self._send_kept(node, time.monotonic())
        return has_ended

    def _told(self) -> Seen:
        acks, pongs = sorted(self._ack_ages) or [0.0], sorted(self._pong_ages) or [0.0]
        return Seen(
            samples=self._samples,
            closed_by_hub=self._closed,
            dropped_by_nodes=self._dropped,
            connects=self._connects,
            pong_worst_seconds=pongs[-1],
            pong_p99_seconds=pongs[len(pongs) * 99 // 100],
            ack_p50_seconds=acks[len(acks) // 2],
            ack_p99_seconds=acks[len(acks) * 99 // 100],
            ack_worst_seconds=acks[-1],
            unacked=sum(len(node.kept) for node in self._nodes),
            longest_interval_seconds=self._longest,
            notices=self._notices,
        )


def main() -> None:
    """Read what to do, do it, tell what was seen."""
    herd = msgspec.json.decode(sys.stdin.buffer.readline(), type=Herd)
    print(msgspec.json.encode(Player(herd).run()).decode(), flush=True)


if __name__ == "__main__":
    main()
