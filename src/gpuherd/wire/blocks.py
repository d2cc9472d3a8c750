"""What a node without an agent prints over SSH: rounds of delimited blocks, each one command's output.

The hub opens one channel with ``COMMAND`` and writes ``start_message`` to it. The node prints, for ever::

    (banners of login scripts, ignored)
    ␤@TOKEN start VERSION
    ␤@TOKEN round N
    …content…
    ␤@TOKEN block NAME STATUS        names the content since the delimiter before
    ␤@TOKEN end N
    ␤@TOKEN alive                    between rounds that are far apart

A delimiter begins with a line break of its own (␤), so that content keeps every byte and may end as it likes. TOKEN
is made by the hub for each channel and travels on standard input: no other process of the node knows it, none can
forge a delimiter with its command line. STATUS is the command's exit status; 124 and 137: ended at its
deadline; 127: there is no such command. A script that will not run prints ``gpuherd-ssh refused REASON`` instead.
"""

from __future__ import annotations

import re

from msgspec import Struct

from gpuherd.model.errors import Refused
from gpuherd.model.text import clean

__all__ = ["COMMAND", "Block", "BlockReader", "Round", "start_message"]

COMMAND = 'exec sh -c \'read -r p; read -r n; s=$(head -c "$n"); eval "$s"\''
"""What is run on the node, whatever its login shell is: takes parameters and script from standard input.

With a key that is bound to a command sshd runs that instead: the same script, which reads the parameters itself.
"""

GREETING = "gpuherd-ssh"
PROTOCOL = 1

MAX_BANNER_BYTES = 64 * 1024
MAX_ROUND_BYTES = 16 * 1024 * 1024
MAX_BLOCKS = 1024
MAX_DELIMITER_BYTES = 256
MAX_WHOLE_BYTES = 64 * 1024

_TOKEN = re.compile(r"[0-9a-f]{32}")
_REFUSAL = f"{GREETING} refused ".encode()
_START = re.compile(rb"start ([\w.+\-]{1,32})")
_ROUND = re.compile(rb"round (\d{1,15})")
_BLOCK = re.compile(rb"block ([a-z0-9_.\-]{1,64}) (\d{1,3})")
_END = re.compile(rb"end (\d{1,15})")
_ALIVE = b"alive"


class Block(Struct, frozen=True):
    """What one command printed, and how it ended."""

    name: str
    status: int
    content: bytes


class Round(Struct, frozen=True):
    """One look at a node."""

    number: int
    blocks: dict[str, Block]


def start_message(
    token: str, *, interval_seconds: float, deadline_seconds: float, command_lines: str, script: bytes
) -> bytes:
    """Say what the hub writes to a channel's standard input, which it then keeps open."""
    if not _TOKEN.fullmatch(token):
        raise ValueError("a token has 32 hexadecimal digits")
    if command_lines not in ("full", "program", "none"):
        raise ValueError(f"command_lines is full, program or none, not {command_lines}")
    words = (
        GREETING,
        str(PROTOCOL),
        token,
        _decimal(interval_seconds),
        _decimal(deadline_seconds),
        command_lines,
    )
    return f"{' '.join(words)}\n{len(script)}\n".encode() + script


def _decimal(seconds: float) -> str:
    return f"{seconds:.3f}".rstrip("0").rstrip(".")


class BlockReader:
    """Makes rounds of a channel's bytes, in whatever pieces they come. Time is linear, memory capped.

    Nothing in the content is believed. Any bytes give rounds or ``Refused`` (``garbled``, ``too_large``,
    ``refused``), after which the channel is of no more use.
    """

    def __init__(self, token: str) -> None:
        if not _TOKEN.fullmatch(token):
            raise ValueError("a token has 32 hexadecimal digits")
        self._mark = f"\n@{token} ".encode()
        self._buffer = bytearray(b"\n")  # so that a delimiter at the very beginning is one too
        self._searched = 0
        self._banner_line = 1
        self._number: int | None = None
        self._blocks: dict[str, Block] = {}
        self._round_bytes = 0
        self._refusal: Refused | None = None
        self.script_version: str | None = None
        """What the script calls its version, once it has started."""

    @property
    def has_started(self) -> bool:
        """Whether the script has begun to speak; until then everything is a banner."""
        return self.script_version is not None

    def feed(self, chunk: bytes) -> list[Round]:
        """Take the next bytes; give the rounds that are complete with them.

        ``Refused`` as soon as there is no good round before the bad bytes: with some in the same chunk they are
        given first, and the call after this one refuses.
        """
        rounds: list[Round] = []
        if self._refusal is None:
            try:
                if self._is_whole(chunk):
                    self._take_whole(chunk, rounds)
                else:
                    self._buffer += chunk
                    self._take(rounds)
            except Refused as refusal:
                self._refusal = refusal
                self._buffer.clear()
                self._blocks = {}
        if self._refusal is not None and not rounds:
            raise Refused(self._refusal.code, str(self._refusal))
        return rounds

    def _is_whole(self, chunk: bytes) -> bool:
        """Whether a chunk begins with a delimiter and may end with one, as a round does that is printed at once."""
        return (
            self._number is None
            and self.script_version is not None
            and not self._buffer
            and len(chunk) <= MAX_WHOLE_BYTES
            and chunk.endswith(b"\n")
            and chunk.startswith(self._mark)
        )

    def _take_whole(self, chunk: bytes, rounds: list[Round]) -> None:
        """Cut at all delimiters in one go: the same as ``_take``, at a fraction of its cost."""
        content = b""
        for piece in chunk.split(self._mark)[1:]:
            words, _, following = piece.partition(b"\n")
            self._round_bytes += len(content) + len(self._mark) + len(words) + 1
            self._obey(words, content, rounds)
            content = following
        self._buffer += content  # the rest, which may hold the beginning of a mark
        self._searched = 0

    def _take(self, rounds: list[Round]) -> None:
        begin = 0  # of the content that the next delimiter ends
        while True:
            at = self._buffer.find(self._mark, max(begin, self._searched))
            if at < 0:
                # The rest may hold the beginning of a mark.
                self._searched = max(begin, len(self._buffer) - len(self._mark) + 1)
                break
            words_at = at + len(self._mark)
            end = self._buffer.find(b"\n", words_at, words_at + MAX_DELIMITER_BYTES)
            if end < 0:
                if len(self._buffer) - words_at >= MAX_DELIMITER_BYTES:
                    raise Refused("garbled", "the node's script printed an unterminated delimiter")
                self._searched = at
                break
            self._check_size(begin, end + 1)
            self._round_bytes += end + 1 - begin
            self._obey(bytes(self._buffer[words_at:end]), bytes(self._buffer[begin:at]), rounds)
            begin = self._searched = end + 1
        self._check_size(begin, len(self._buffer))
        del self._buffer[:begin]
        self._searched -= begin

    def _check_size(self, begin: int, end: int) -> None:
        """Look at what has arrived of the banner or round; content from ``begin`` to ``end`` is not counted yet."""
        if self.script_version is not None:
            if self._round_bytes + end - begin > MAX_ROUND_BYTES:
                raise Refused(
                    "too_large", f"the node printed more than {MAX_ROUND_BYTES >> 20} MiB in one round"
                )
            return
        while (line_end := self._buffer.find(b"\n", self._banner_line, end)) >= 0:
            line = bytes(self._buffer[self._banner_line : min(line_end, self._banner_line + 256)])
            if line.startswith(_REFUSAL):
                reason = clean(line[len(_REFUSAL) :].decode(errors="replace").strip(), 200)
                raise Refused("refused", f"the script on the node refuses to run: {reason}")
            self._banner_line = line_end + 1
        if end > MAX_BANNER_BYTES:
            raise Refused(
                "garbled",
                f"the node printed more than {MAX_BANNER_BYTES // 1024} KiB before the script started: "
                "check what its login scripts print",
            )

    def _obey(self, words: bytes, content: bytes, rounds: list[Round]) -> None:
        """Do what a delimiter says about the content before it."""
        if self.script_version is None:
            start = _START.fullmatch(words)
            if start is None:
                raise Refused("garbled", "the node's script did not start with its version")
            self.script_version = start[1].decode()
            self._round_bytes = 0
        elif self._number is None:
            self._between_rounds(words)
        elif block := _BLOCK.fullmatch(words):
            name, status = block[1].decode(), int(block[2])
            if name in self._blocks:
                raise Refused("garbled", f"the node's script printed block {name} twice in a round")
            if len(self._blocks) >= MAX_BLOCKS:
                raise Refused("too_large", f"the node printed more than {MAX_BLOCKS} blocks in one round")
            self._blocks[name] = Block(name, status, content)
        elif (end := _END.fullmatch(words)) and int(end[1]) == self._number:
            rounds.append(Round(self._number, self._blocks))
            self._number, self._blocks = None, {}
            self._round_bytes = 0
        else:
            raise Refused("garbled", f"the node's script printed {clean(repr(words), 80)} within a round")

    def _between_rounds(self, words: bytes) -> None:
        if begun := _ROUND.fullmatch(words):
            self._number = int(begun[1])
        elif words != _ALIVE:
            raise Refused("garbled", f"the node's script printed {clean(repr(words), 80)} between rounds")
        self._round_bytes = 0
