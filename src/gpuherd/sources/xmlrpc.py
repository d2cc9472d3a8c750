"""Nodes of an older XML-RPC tool: each is asked for ``gpu_stats()``, again and again."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from xmlrpc.client import dumps

from gpuherd.model.errors import Refused
from gpuherd.model.targets import NodeWay, Target
from gpuherd.sources.asking import HttpQuestions
from gpuherd.sources.assembly import Scrub, SteadyParts, remembering
from gpuherd.sources.following import ContactFailed, NodeIntake
from gpuherd.sources.settings import XmlRpcSettings
from gpuherd.sources.xmlrpc_answer import StartTimes, read_stats, returned_text

__all__ = ["XmlRpcWay"]


class XmlRpcWay:
    """Asks XML-RPC nodes. They read their GPUs when they are asked, so an answer is news."""

    way: NodeWay = "xmlrpc"

    def __init__(
        self,
        settings: XmlRpcSettings,
        *,
        scrub: Scrub,
        wall: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._settings = settings
        self._scrub = remembering(scrub)
        self._wall = wall
        self._monotonic = monotonic
        self._questions = HttpQuestions(deadline_seconds=settings.deadline_seconds, content_type="text/xml")
        self._question = dumps((), "gpu_stats").encode()

    @property
    def interval_seconds(self) -> float:
        """How often a node is asked."""
        return self._settings.interval_seconds

    async def follow(self, target: Target, intake: NodeIntake) -> None:
        """Hand over a report for every answer."""
        port = target.port or self._settings.port
        steady, starts = SteadyParts(), StartTimes()
        while True:
            asked_at = self._monotonic()
            answer = await self._questions.post(target, port, "/", self._question)
            if answer.status != 200:
                raise ContactFailed(
                    "garbled",
                    f"{target.name} responds with {answer.status}; is it the old monitor's RPC server?",
                )
            report = read_stats(
                returned_text(answer.body, target.name),
                name=target.name,
                node_id=intake.node_id,
                wall=self._wall(),
                scrub=self._scrub,
                starts=starts,
            )
            try:
                intake.take(steady.keep(report))
            except Refused as error:
                raise ContactFailed("garbled", f"{target.name}: {error}") from error
            pause = asked_at + self._settings.interval_seconds - self._monotonic()
            await asyncio.sleep(max(0.0, pause))

    async def close(self) -> None:
        """Close the connections."""
        await self._questions.close()
