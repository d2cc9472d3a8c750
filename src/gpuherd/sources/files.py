"""A watched folder into which nodes' reports are dropped: our own JSON, or the CSV files of an older tool."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable

import msgspec
from msgspec import Struct, field

from gpuherd.model.errors import Failed, Refused
from gpuherd.model.reports import Report
from gpuherd.model.text import clean
from gpuherd.sources.assembly import Scrub, SteadyParts, remembering
from gpuherd.sources.drop_csv import read_drop
from gpuherd.sources.folder_reading import (
    HOSTS_NAME,
    MAX_FILE_BYTES,
    Drop,
    open_folder,
    read_file,
    read_hosts_json,
    scan,
)
from gpuherd.sources.following import Arrivals, ContactFailed
from gpuherd.sources.node_clock import zone_seconds
from gpuherd.sources.settings import FolderSettings
from gpuherd.sources.threads import in_thread

__all__ = ["FolderWatch"]

log = logging.getLogger(__name__)

LOOK_DEADLINE_SECONDS = 30.0
SILENT_INTERVALS = 3
CLOCK_SET_BACK_SECONDS = 600.0
"""A time that is older than before by less than this is a half-copied log, by more it is a clock that was set."""
CLOCKS_APART_SECONDS = 60.0

_decode_report = msgspec.json.Decoder(Report).decode


class _Host(Struct):
    """What is known of one host's files."""

    seen: Drop = {}
    changed_at: float = 0.0
    read: Drop = {}
    stamped_at: float | None = None
    news_at: float = 0.0
    has_arrived: bool = False
    is_in_trouble: bool = False
    refusal: str = ""
    steady: SteadyParts = field(default_factory=SteadyParts)


class _Found(Struct, frozen=True, kw_only=True):
    """One host's files, read: a report with the node's own time for it, or why there is none."""

    host: str
    report: Report | None = None
    stamped_at: float = 0.0
    is_recent: bool = False
    failure: ContactFailed | None = None


class FolderWatch:
    """Looks again and again which files are new, and hands their reports over.

    Files may be half written, by scp or over NFS: CSV files are read when they have not changed from one look to the
    next, and lines without an end are not used. Data counts as alive when the time inside of it moves on.
    """

    def __init__(
        self,
        settings: FolderSettings,
        arrivals: Arrivals,
        *,
        scrub: Scrub,
        wall: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._settings = settings
        self._arrivals = arrivals
        self._scrub = remembering(scrub)
        self._wall = wall
        self._monotonic = monotonic
        self._hosts: dict[str, _Host] = {}
        self._listed: dict[str, str] | None = None
        """The hosts that an older tool's hosts.json names, with their shown names; none: there is no such file."""
        self._list_trouble = ""
        self._kept: frozenset[str] | None = None
        """Whom that list leaves in this folder, with those who report in our own form."""
        self._left_out = 0
        self._told_left_out: str | None = None
        self._remembered: frozenset[str] = frozenset()
        self._reading: asyncio.Future[list[_Found]] | None = None
        self.look_every_seconds = min(2.0, max(0.25, settings.interval_seconds / 10))

    async def look(self) -> None:
        """Look once and hand over what is new; ``Failed`` if the folder cannot be read or does not answer."""
        # One look at a time, in a thread that nobody waits for at the end: a dead NFS server blocks it for ever.
        if self._reading is None:
            self._remembered = frozenset(self._arrivals.senders("file"))
            self._reading = in_thread(self._read, "read folder")
        try:
            async with asyncio.timeout(LOOK_DEADLINE_SECONDS):
                found = await asyncio.shield(self._reading)
        except TimeoutError as error:
            raise Failed(
                f"the folder {self._settings.path} does not respond; is the server it is mounted from up?"
            ) from error
        finally:
            if self._reading.done():
                self._reading = None
        for one in found:
            self._hand_over(one)
        if self._kept is not None:
            self._arrivals.keep_only(str(self._settings.path), self._kept)
        self._tell_silence()
        self._tell_left_out()

    # -- in the thread ---------------------------------------------------------------------------------------------

    def _read(self) -> list[_Found]:
        found: list[_Found] = []
        with open_folder(self._settings.path) as folder:
            self._read_list(folder)
            drops, self._left_out = scan(folder, self._settings.max_nodes, self._is_known)
            self._kept = None
            if self._listed:
                drops = {name: drop for name, drop in drops.items() if name in self._listed or "json" in drop}
                self._kept = frozenset((*self._listed, *drops))
                for name in self._hosts.keys() - self._kept:
                    del self._hosts[name]
            for gone in self._hosts.keys() - drops.keys():
                if not self._hosts[gone].has_arrived:
                    del self._hosts[gone]
            for name, drop in drops.items():
                host = self._hosts.setdefault(name, _Host(news_at=self._monotonic()))
                if self._is_ready(host, drop):
                    one = self._read_host(folder, name, drop)
                    if one is not None:
                        host.read = drop
                        found.append(one)
        return found

    def _read_list(self, folder: int) -> None:
        """Read hosts.json. One that is damaged, half written or empty changes nothing: the last good one counts."""
        trouble = ""
        try:
            listed = read_hosts_json(folder)
            if listed is None or listed:
                self._listed = listed
            else:
                trouble = "it lists no hosts"
        except Failed as error:
            trouble = str(error)
        if trouble and trouble != self._list_trouble:
            log.warning(
                "%s/%s: %s; %s",
                self._settings.path,
                HOSTS_NAME,
                trouble,
                "the last good list stays in use" if self._listed else "all hosts in the folder are shown",
            )
        self._list_trouble = trouble

    def _is_known(self, name: str) -> bool:
        """Tell whether a host has reported before, including before a restart of the hub."""
        host = self._hosts.get(name)
        return (host is not None and host.has_arrived) or name.lower().replace("_", "-") in self._remembered

    def _is_ready(self, host: _Host, drop: Drop) -> bool:
        """Tell whether there is something new that is not being written right now."""
        if drop == host.read or not ({"json", "gpus"} & drop.keys()):
            return False
        is_changing = drop != host.seen
        if is_changing and host.seen == host.read:
            host.changed_at = self._monotonic()
        host.seen = drop
        # A JSON report shows by itself whether it is whole; something that never rests is read as it is.
        is_restless = self._monotonic() - host.changed_at > self._settings.interval_seconds
        return "json" in drop or not is_changing or is_restless

    def _read_host(self, folder: int, name: str, drop: Drop) -> _Found | None:
        kinds = ["json"] if "json" in drop else list(drop)
        files: dict[str, bytes] = {}
        for kind in kinds:
            content = read_file(folder, name, kind, drop[kind])
            if content is None:
                return None
            files[kind] = content
        age_seconds = self._wall() - max(drop[kind].mtime_ns for kind in kinds) / 1e9
        is_recent = abs(age_seconds) <= self._longest_seconds
        try:
            report, stamped_at, is_plausible = (
                self._own_report(name, files["json"]) if "json" in files else self._old_report(name, files)
            )
        except ContactFailed as failure:
            return _Found(host=name, failure=failure)
        except Exception as error:  # the files of one host must not keep us from those of the others
            log.exception("%s: unexpected error while reading the files of %s", self._settings.path, name)
            return _Found(
                host=name,
                failure=ContactFailed(
                    "hub_error",
                    f"{name}: {type(error).__name__} in the hub while its files were read, see its log",
                ),
            )
        return _Found(host=name, report=report, stamped_at=stamped_at, is_recent=is_recent and is_plausible)

    def _own_report(self, name: str, content: bytes) -> tuple[Report, float, bool]:
        if len(content) > MAX_FILE_BYTES:
            raise ContactFailed("too_large", f"{name}.json is larger than {MAX_FILE_BYTES // 2**20} MiB")
        try:
            report = _decode_report(content)
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
            raise ContactFailed(
                "garbled",
                f"{name}.json is not a report: {clean(str(error), 160)}; write it with `gpuherd agent "
                "--once` to a temporary file, then rename that",
            ) from error
        age_seconds = self._wall() - report.sample.time
        return report, report.sample.time, -CLOCKS_APART_SECONDS <= age_seconds <= self._longest_seconds

    def _old_report(self, name: str, files: dict[str, bytes]) -> tuple[Report, float, bool]:
        wall = self._wall()
        reading = read_drop(
            files,
            host=name,
            wall=wall,
            interval_seconds=self._settings.interval_seconds,
            scrub=self._scrub,
        )
        zone = zone_seconds(
            reading.stamped_at,
            wall,
            behind_seconds=self._longest_seconds,
            ahead_seconds=CLOCKS_APART_SECONDS,
        )
        return reading.report, reading.stamped_at, zone is not None

    # -- on the event loop -----------------------------------------------------------------------------------------

    @property
    def _longest_seconds(self) -> float:
        return SILENT_INTERVALS * self._settings.interval_seconds

    def _hand_over(self, found: _Found) -> None:
        host = self._hosts[found.host]
        if found.report is None:
            if host.has_arrived:
                self._trouble(found.host, found.failure)
            elif found.failure is not None and host.refusal != str(found.failure):
                host.refusal = str(found.failure)
                log.warning("%s: %s", self._settings.path, host.refusal)
            return
        try:
            intake = self._arrivals.intake(
                found.host,
                "file",
                interval_seconds=self._settings.interval_seconds,
                place=str(self._settings.path),
                shown=(self._listed or {}).get(found.host, ""),
            )
            host.has_arrived = True
            if self._is_new(host, found):
                host.news_at = self._monotonic()
                intake.take(host.steady.keep(found.report))
                self._trouble(found.host, None)
        except Refused as error:
            if host.refusal != str(error):
                host.refusal = str(error)
                log.warning("%s: ignoring the files of %s: %s", self._settings.path, found.host, error)
            if host.has_arrived:
                self._trouble(found.host, ContactFailed("garbled", str(error)))

    def _is_new(self, host: _Host, found: _Found) -> bool:
        """Tell whether the data has moved on; the first seen of a host counts if both file and content are recent."""
        before, host.stamped_at = host.stamped_at, found.stamped_at
        if before is None:
            return found.is_recent
        if found.stamped_at > before or found.stamped_at < before - CLOCK_SET_BACK_SECONDS:
            return True
        host.stamped_at = before
        return False

    def _tell_silence(self) -> None:
        now = self._monotonic()
        for name, host in self._hosts.items():
            if host.has_arrived and not host.is_in_trouble and now - host.news_at > self._longest_seconds:
                self._trouble(
                    name,
                    ContactFailed(
                        "no_data",
                        f"the files of {name} in {self._settings.path} contain nothing new: if they are "
                        "still updated, nvidia-smi hangs there; if not, the scripts or the copying have "
                        "stopped",
                    ),
                )

    def _tell_left_out(self) -> None:
        message = None
        if self._left_out:
            message = (
                f"the folder {self._settings.path} has files of "
                f"{self._settings.max_nodes + self._left_out} hosts, {self._left_out} more than "
                "folders.max_nodes, which are not shown: remove files that do not belong to a host, or "
                "raise folders.max_nodes"
            )
        if message is not None and self._told_left_out is None:
            log.warning("%s", message)
        self._told_left_out = message
        self._arrivals.left_out(str(self._settings.path), message)

    def _trouble(self, name: str, failure: ContactFailed | None) -> None:
        host = self._hosts[name]
        if failure is not None or host.is_in_trouble:
            host.is_in_trouble = failure is not None
            self._arrivals.trouble(name, failure)
