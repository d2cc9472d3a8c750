"""Nodes that serve the drop files of an older tool over HTTP: the hub fetches them, again and again."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable

from gpuherd.model.errors import Refused
from gpuherd.model.targets import NodeWay, Target
from gpuherd.sources.asking import HttpQuestions
from gpuherd.sources.assembly import Scrub, SteadyParts, remembering
from gpuherd.sources.drop_csv import DropReading, read_drop
from gpuherd.sources.folder_reading import KINDS, file_name
from gpuherd.sources.following import ContactFailed, NodeIntake
from gpuherd.sources.node_clock import zone_seconds
from gpuherd.sources.settings import HttpFilesSettings

__all__ = ["HttpFilesWay"]

NODE_WRITES_EVERY_SECONDS = 20.0
"""How often the older tool's scripts renew their files."""
SILENT_INTERVALS = 3
TRIES = 3
"""A file is empty for a moment while it is written: it is fetched this often before that is a failure."""
AGAIN_SECONDS = 1.0
CLOCKS_APART_SECONDS = 60.0
SMALL_BYTES = 256 * 2**10
"""Files of one node up to this size are read in a fraction of a second; those of an honest node are smaller."""


class HttpFilesWay:
    """Fetches files by the names that they must have; whatever else a node serves is never asked for."""

    way: NodeWay = "http_files"

    def __init__(
        self,
        settings: HttpFilesSettings,
        *,
        scrub: Scrub,
        wall: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._settings = settings
        self._scrub = scrub
        self._wall = wall
        self._monotonic = monotonic
        self._questions = HttpQuestions(deadline_seconds=settings.deadline_seconds, content_type="text/plain")
        # Beyond one call of follow: files that stay the same must not count as news each time it is tried again.
        self._news: dict[str, tuple[float, float]] = {}
        self._reading_much = asyncio.Lock()
        """Files of a hostile node take seconds to read: in a thread, and large ones wait for each other only."""

    @property
    def interval_seconds(self) -> float:
        """How often news of a node are to be expected."""
        return max(self._settings.interval_seconds, NODE_WRITES_EVERY_SECONDS)

    async def follow(self, target: Target, intake: NodeIntake) -> None:
        """Hand over a node's reports; each block that its scripts wrote is handed over once."""
        steady, scrub = SteadyParts(), remembering(self._scrub)
        while True:
            asked_at = self._monotonic()
            reading = await self._read(target, scrub)
            if self._is_new(intake.node_id, reading.stamped_at, target.name):
                try:
                    intake.take(steady.keep(reading.report))
                except Refused as error:
                    raise ContactFailed("garbled", f"{target.name}: {error}") from error
            await asyncio.sleep(max(0.0, asked_at + self._settings.interval_seconds - self._monotonic()))

    async def close(self) -> None:
        """Close the connections and forget what nodes served."""
        await self._questions.close()
        self._news.clear()

    async def _read(self, target: Target, scrub: Scrub) -> DropReading:
        for left in reversed(range(TRIES)):
            host, files = await self._fetch(target)
            is_small = sum(map(len, files.values())) <= SMALL_BYTES
            try:
                async with contextlib.nullcontext() if is_small else self._reading_much:
                    return await asyncio.to_thread(
                        read_drop,
                        files,
                        host=host,
                        wall=self._wall(),
                        interval_seconds=self.interval_seconds,
                        scrub=scrub,
                    )
            except ContactFailed:
                if not left:
                    raise
                await asyncio.sleep(AGAIN_SECONDS)
        raise AssertionError("the last try returns or raises")

    async def _fetch(self, target: Target) -> tuple[str, dict[str, bytes]]:
        """Fetch a node's files, which bear the first part of its name, or all of it."""
        port = target.port or self._settings.port
        for host in dict.fromkeys((target.name.partition(".")[0], target.name)):
            files: dict[str, bytes] = {}
            for kind in KINDS:
                name = file_name(host, kind)
                answer = await self._questions.get(target, port, f"/{name}")
                if answer.status == 200:
                    files[kind] = answer.body
                elif answer.status != 404:
                    raise ContactFailed(
                        "garbled",
                        f"{target.name} responds to {name} with {answer.status}; does it serve the folder "
                        "of gpu-run.sh?",
                    )
                if "gpus" not in files:
                    break  # without it the others say nothing
            if "gpus" in files:
                return host, files
        raise ContactFailed(
            "no_data",
            f"{target.name} serves no {target.name.partition('.')[0]}_gpus.csv: is task 1 of gpu-run.sh running there, "
            "and is its folder served?",
        )

    def _is_new(self, node_id: str, stamped_at: float, name: str) -> bool:
        """Tell whether the time inside has moved on; the first seen counts if it is recent, except for the zone."""
        now, longest = self._monotonic(), SILENT_INTERVALS * self.interval_seconds
        known = self._news.get(node_id)
        if known is None or known[0] != stamped_at:
            self._news[node_id] = stamped_at, now
            zone = zone_seconds(
                stamped_at, self._wall(), behind_seconds=longest, ahead_seconds=CLOCKS_APART_SECONDS
            )
            return known is not None or zone is not None
        if now - known[1] > longest:
            raise ContactFailed(
                "no_data",
                f"the files of {name} contain nothing new: nvidia-smi hangs there, or the scripts have "
                "stopped",
            )
        return False
