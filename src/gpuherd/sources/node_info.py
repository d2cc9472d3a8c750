"""Nodes of an older HTTP tool: each is asked with POST /get-status and its password, again and again."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from pathlib import Path

import msgspec
from msgspec import Struct, structs

from gpuherd.model.errors import Refused
from gpuherd.model.reports import Problem, Report
from gpuherd.model.targets import NodeWay, Target
from gpuherd.sources.asking import HttpAnswer, HttpQuestions
from gpuherd.sources.assembly import Scrub, SteadyParts, remembering
from gpuherd.sources.following import ContactFailed, NodeIntake
from gpuherd.sources.node_info_answer import NodeInfo, read_answer
from gpuherd.sources.settings import NodeInfoSettings

__all__ = ["NodeInfoWay"]

log = logging.getLogger(__name__)

README_PASSWORD = "8888"  # noqa: S105 - everyone can read it there
NODE_READS_EVERY_SECONDS = 4.0
"""How often the tool reads its GPUs; it cannot be set there."""
INTERVALS_WITHOUT_NEWS = 3
FIRST_LOOK_SECONDS = 1.0
"""Until it is known that a node's data moves, it is asked this often, so that a good node shows soon."""

MAX_HOSTNAMES = 10_000


class _News(Struct):
    """What a node said last of when its data was read, and since when it has said the same."""

    last_update: str
    since: float
    has_moved: bool = False


class NodeInfoWay:
    """Asks ``node_info.py`` nodes."""

    way: NodeWay = "node_info"

    def __init__(
        self,
        settings: NodeInfoSettings,
        *,
        scrub: Scrub,
        wall: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._settings = settings
        self._scrub = remembering(scrub)
        self._wall = wall
        self._monotonic = monotonic
        self._questions = HttpQuestions(
            deadline_seconds=settings.deadline_seconds, content_type="application/json"
        )
        # Beyond one call of follow: a hung node must not count as alive anew each time it is tried again.
        self._news: dict[str, _News] = {}
        self._spoke_last: dict[str, tuple[str, str]] = {}
        if settings.password_file is None:
            log.warning(
                "node_info nodes use the default password of the tool's README, which everyone knows; "
                "change PASSWD on the nodes and put the new one into a file for reach.password_file"
            )

    @property
    def interval_seconds(self) -> float:
        """How often news of a node are to be expected: asking more often than it reads brings none."""
        return max(self._settings.interval_seconds, NODE_READS_EVERY_SECONDS)

    async def follow(self, target: Target, intake: NodeIntake) -> None:
        """Hand over a node's reports; each reading of the node is handed over once."""
        body = msgspec.json.encode({"passwd": await asyncio.to_thread(self._password)})
        port = target.port or self._settings.port
        steady = SteadyParts()
        while True:
            asked_at = self._monotonic()
            answer = await self._questions.post(target, port, "/get-status", body)
            self._take(answer, target, intake, steady)
            pause = self._settings.interval_seconds
            if not self._news[intake.node_id].has_moved:
                pause = min(pause, FIRST_LOOK_SECONDS)
            await asyncio.sleep(max(0.0, asked_at + pause - self._monotonic()))

    async def close(self) -> None:
        """Close the connections and forget what nodes said."""
        await self._questions.close()
        self._news.clear()
        self._spoke_last.clear()

    def _take(self, answer: HttpAnswer, target: Target, intake: NodeIntake, steady: SteadyParts) -> None:
        check_status(answer.status, target.name)
        info = read_answer(
            answer.body, name=target.name, node_id=intake.node_id, wall=self._wall(), scrub=self._scrub
        )
        if not self._is_new(intake.node_id, info.last_update, target.name):
            return
        report = self._doubted(info, intake.node_id)
        try:
            intake.take(steady.keep(report))
        except Refused as error:
            raise ContactFailed("garbled", f"{target.name}: {error}") from error

    def _is_new(self, node_id: str, last_update: str, name: str) -> bool:
        """Tell whether the node has read its GPUs since it was asked before; ``ContactFailed`` if it should have.

        The tool's web server goes on answering old data when its reading thread has died or hangs in the driver. Its
        times have no zone, so they are compared with each other and never with our clock; the first answer of a
        node tells nothing yet.
        """
        now = self._monotonic()
        news = self._news.get(node_id)
        if news is None:
            self._news[node_id] = _News(last_update, now)
            return False
        if news.last_update != last_update:
            self._news[node_id] = _News(last_update, now, has_moved=True)
            return True
        if now - news.since > INTERVALS_WITHOUT_NEWS * self.interval_seconds:
            raise ContactFailed(
                "no_data",
                f"{name} responds, but its data is old: nothing has been read there since {last_update} "
                "(its own clock); restart its node_info.py, and check whether nvidia-smi hangs",
            )
        return False

    def _doubted(self, info: NodeInfo, node_id: str) -> Report:
        """Add a problem if another node has just told the very same reading: two entries lead to one machine."""
        hostname = info.report.facts.host.hostname
        last_update, speaker = self._spoke_last.get(hostname, ("", node_id))
        self._spoke_last[hostname] = info.last_update, node_id
        while len(self._spoke_last) > MAX_HOSTNAMES:
            del self._spoke_last[next(iter(self._spoke_last))]
        if speaker == node_id or last_update != info.last_update:
            return info.report
        problem = Problem(
            code="same_machine",
            message=f"it returns the data of {hostname}, as node {speaker} does: two entries of the list "
            "point to the same machine; correct one address or remove the entry",
        )
        sample = info.report.sample
        return structs.replace(
            info.report, sample=structs.replace(sample, problems=(*sample.problems, problem))
        )

    def _password(self) -> str:
        file: Path | None = self._settings.password_file
        if file is None:
            return README_PASSWORD
        try:
            return file.expanduser().read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is not text"
            raise ContactFailed(
                "wrong_password", f"reach.password_file: cannot read {file}: {reason}", needs_person=True
            ) from error


def check_status(status: int, name: str) -> None:
    """Raise ``ContactFailed`` for an answer that is no success; the tool refuses a wrong password with 404."""
    if status == 200:
        return
    if status in (401, 403, 404):
        raise ContactFailed(
            "wrong_password",
            f"{name} responds with {status}, as node_info.py does to a wrong password; put the PASSWD of "
            "its node_info.py into reach.password_file",
            needs_person=True,
        )
    if 300 <= status < 400:
        raise ContactFailed("garbled", f"{name} redirects ({status}); redirects are not followed")
    raise ContactFailed("garbled", f"{name} responds with {status}; the log of its node_info.py says why")
