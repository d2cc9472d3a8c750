"""A node's channel: bytes become rounds, rounds become reports, silence and nonsense become reasons."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Protocol

import asyncssh
from asyncssh.constants import EXTENDED_DATA_STDERR

from gpuherd.model.errors import Refused
from gpuherd.model.reports import Report
from gpuherd.model.text import SENTENCE_LENGTH, clean, clip
from gpuherd.sources.following import ContactFailed, NodeIntake
from gpuherd.wire.blocks import BlockReader, Round

__all__ = ["NodeSession", "RoundReader"]

KEPT_WORDS_BYTES = 1024
"""How much of a banner and of the error output is kept for a message."""
MAX_ERROR_BYTES = 2**20
SPARE_ROUNDS = 8
DOUBT_AFTER = 1.5
"""Keepalive times of silence after which a link is doubted. A node that reports in time never needs a keepalive."""

_log = logging.getLogger(__name__)


class RoundReader(Protocol):
    """Makes one node's rounds into reports; made anew for each channel."""

    def read(self, round_: Round, /) -> Report:
        """Give the report of a round. ``Refused`` if it cannot be understood."""

    def close(self) -> None:
        """The node is not followed any more."""


class NodeSession(asyncssh.SSHClientSession[bytes]):
    """One channel's life. Everything happens in asyncssh's callbacks: no task wakes up for a round."""

    def __init__(
        self,
        node: str,
        blocks: BlockReader,
        reader: RoundReader,
        intake: NodeIntake,
        *,
        interval_seconds: float,
        keepalive_seconds: float,
        patience_seconds: float,
        monotonic: Callable[[], float],
    ) -> None:
        loop = asyncio.get_running_loop()
        self.settled: asyncio.Future[None] = loop.create_future()
        """Done when the script has spoken, or it is clear that it will not."""
        self.ended: asyncio.Future[ContactFailed] = loop.create_future()
        """Why there will be no more reports."""
        self._node = node
        self._blocks = blocks
        self._reader = reader
        self._intake = intake
        self._interval_seconds = interval_seconds
        self._keepalive_seconds = keepalive_seconds
        self._patience_seconds = patience_seconds
        self._monotonic = monotonic
        self._has_started = False
        self._began_at = self._round_at = self._heard_at = monotonic()
        self._rounds = 0
        self._banner = b""
        self._errors = b""
        self._errors_bytes = 0
        self._exit = ""
        self._watch: asyncio.TimerHandle | None = None
        self._connection: asyncssh.SSHClientConnection | None = None
        self._is_doubted = False
        self.after_round: Callable[[], None] | None = None
        """Called when a round is done with."""

    def connection_made(self, chan: asyncssh.SSHClientChannel[bytes]) -> None:
        """Keep the connection, whose keepalive is needed when the node falls silent."""
        self._connection = chan.get_extra_info("connection")

    def data_received(self, data: bytes, datatype: asyncssh.DataType) -> None:
        """Take what the node printed."""
        if self.ended.done():
            return
        if datatype == EXTENDED_DATA_STDERR:
            self._take_errors(data)
            return
        self._heard_at = self._monotonic()
        if not self._has_started:
            self._banner = (self._banner + data)[:KEPT_WORDS_BYTES]
        try:
            rounds = self._blocks.feed(data)
            self._count(len(rounds))
            for done in rounds:
                self._intake.take(self._reader.read(done))
        except Refused as refusal:
            self._refuse(refusal)
            return
        except Exception as error:  # noqa: BLE001 - a mistake of ours about this node must not cost another anything
            _log.exception("cannot read a report of node %s over SSH", self._node)
            self.fail(
                "garbled",
                f"its output could not be read ({type(error).__name__}); this is a bug in gpuherd, see the "
                "hub's log",
            )
            return
        if rounds:
            self._round_at = self._heard_at
            if self.after_round is not None:
                self.after_round()
        if not self._has_started and self._blocks.has_started:
            self._begin()

    def _take_errors(self, data: bytes) -> None:
        self._errors = (self._errors + data)[:KEPT_WORDS_BYTES]
        self._errors_bytes += len(data)
        if self._errors_bytes > MAX_ERROR_BYTES:
            self.fail("too_large", f"it keeps printing errors{self._words()}")

    def _count(self, rounds: int) -> None:
        """Do not let a node that reports without pause keep the hub from the others."""
        self._rounds += rounds
        due = (self._heard_at - self._began_at) / self._interval_seconds
        if self._rounds > SPARE_ROUNDS + 2 * due:
            raise Refused(
                "garbled",
                f"it reports much more often than every {self._interval_seconds:g} s, the interval that "
                "the hub set; its script is not this hub's",
            )

    def _begin(self) -> None:
        self._has_started = True
        self._banner = b""
        self._round_at = self._heard_at
        self._settle()
        self._look_again()

    def _look_again(self) -> None:
        """Look after the node: one timer, moved on only when it rings, so that a round costs no timer at all."""
        now = self._monotonic()
        late, silent = now - self._round_at, now - self._heard_at
        if late >= self._patience_seconds:
            rounds = "a first round" if not self._rounds else "another round"
            self.fail(
                "timeout",
                f"the login works but {rounds} has not arrived for {late:.0f} s (last byte {silent:.0f} s "
                "ago); the node is overloaded, or a command on it cannot be stopped",
            )
            return
        self._doubt(silent)
        doubtful = DOUBT_AFTER * self._keepalive_seconds
        wait = min(self._patience_seconds - late, doubtful - silent if silent < doubtful else doubtful)
        self._watch = asyncio.get_running_loop().call_later(max(wait, 0.01), self._look_again)

    def _doubt(self, silent: float) -> None:
        """Let keepalives decide about a link that has fallen silent: no answer to one, and it is lost."""
        is_doubted = silent >= DOUBT_AFTER * self._keepalive_seconds
        if is_doubted != self._is_doubted and self._connection is not None:
            self._is_doubted = is_doubted
            # One is sent after this time and given as long again: three keepalive times of silence in all.
            interval = (3 - DOUBT_AFTER) / 2 * self._keepalive_seconds
            self._connection.set_keepalive(interval if is_doubted else 0, 1)

    def exit_status_received(self, status: int) -> None:
        """Note how the command ended."""
        self._exit = f"ended with status {status}"

    def exit_signal_received(self, signal: str, core_dumped: bool, msg: str, lang: str) -> None:
        """Note what ended the command."""
        self._exit = f"was ended by signal {clean(signal, 16)}"

    def eof_received(self) -> bool:
        """Nothing more will come."""
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        """Say why the channel is gone, unless it is known already."""
        if self.ended.done():
            return
        if exc is not None:
            reason = clean(str(exc), 160)
            if "keepalive" in reason:
                reason = "it has not responded to three keepalives"
            self.fail("link_lost", f"the connection was lost: {reason}")
        elif self._has_started:
            self.fail("link_lost", f"the script on the node {self._exit or 'has ended'}{self._words()}")
        elif self._exit:
            self._fail_unstarted()
        else:
            self.fail("link_lost", "the server closed the connection before the script could start")

    def _fail_unstarted(self) -> None:
        """Something else ran than the script: a refusing shell, another forced command, no sh."""
        if self._exit.endswith(" 127"):
            why = "has no sh or no head in the login shell's PATH"
            remedy = "check the PATH of a non-interactive login there"
        else:
            why = "did not run the script it was given"
            remedy = (
                "if the account's shell is nologin, give it a real one; if the key has a command= in authorized_keys, "
                "it must be the gpuherd-node script"
            )
        self.fail(
            "command_refused",
            f"the login works but the node {why}: what it ran {self._exit}{self._words()}; {remedy}",
            needs_person=True,
        )

    def _words(self) -> str:
        """Quote what the node said, error output first."""
        for said in (self._errors, self._banner):
            text = " ".join(said.decode("utf-8", "replace").split())
            if text:
                return f' and printed "{clean(text, 160)}"'
        return ""

    def _refuse(self, refusal: Refused) -> None:
        if refusal.code == "refused":
            self.fail("command_refused", f"{refusal}", needs_person=True)
        else:
            self.fail(refusal.code if refusal.code == "too_large" else "garbled", f"{refusal}")

    def fail(self, code: str, message: str, *, needs_person: bool = False) -> None:
        """End with a reason; the first one counts."""
        if not self.ended.done():
            text = clip(f"{self._node}: {message}", SENTENCE_LENGTH)
            self.ended.set_result(ContactFailed(code, text, needs_person=needs_person))
            self._settle()

    def _settle(self) -> None:
        if not self.settled.done():
            self.settled.set_result(None)

    def close(self) -> None:
        """Let go of the node; harmless when repeated."""
        if self._watch is not None:
            self._watch.cancel()
        if not self.ended.done():
            self.ended.cancel()
