"""Nodes whose reports are dropped into a watched folder: what lies there, how old it is, whether it can be read."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path

import msgspec
from msgspec import Struct

from gpuherd.auth.enrolment import node_id_for
from gpuherd.collect.scrub import scrub
from gpuherd.model.errors import Failed, Refused
from gpuherd.model.reports import Report
from gpuherd.model.text import clean
from gpuherd.sources.drop_csv import read_drop
from gpuherd.sources.folder_reading import (
    HOSTS_NAME,
    MAX_ENTRIES,
    Drop,
    open_folder,
    read_file,
    read_hosts_json,
    scan,
)
from gpuherd.sources.settings import FolderSettings
from gpuherd.wiring.doctor.judging import judge_reading
from gpuherd.wiring.doctor.steps import Journal, StepFailed, plural
from gpuherd.wiring.doctor.threads import in_thread
from gpuherd.wiring.doctor.wording import age

__all__ = ["FoundDrop", "SeenFolder", "judge_drop", "look_into"]

LOOK_SECONDS = 10.0
SILENT_INTERVALS = 3


class SeenFolder(Struct, frozen=True, kw_only=True):
    """A watched folder and the hosts whose files lie in it."""

    settings: FolderSettings
    path: Path
    drops: Mapping[str, Drop]
    listed: Mapping[str, str] | None = None
    """The hosts that its hosts.json names, with their shown names."""
    list_trouble: str = ""
    """What is wrong with its hosts.json."""

    def find(self, host: str) -> FoundDrop | None:
        """Look for a host by its name, id or shown name."""
        shown = {name for name, title in (self.listed or {}).items() if title == host}
        wanted = {host, _id_of(host), *shown}
        name = next((name for name in self.drops if name in wanted or _id_of(name) in wanted), None)
        return None if name is None else FoundDrop(folder=self, host=name, drop=self.drops[name])


class FoundDrop(Struct, frozen=True, kw_only=True):
    """The files of one host."""

    folder: SeenFolder
    host: str
    drop: Drop


async def look_into(settings: FolderSettings, base: Path) -> SeenFolder:
    """List a folder; ``Failed`` if it cannot be read or does not answer."""
    path = base / settings.path.expanduser()

    def work() -> SeenFolder:
        listed, trouble = None, ""
        with open_folder(path) as folder:
            drops, _ = scan(folder, MAX_ENTRIES)
            try:
                listed = read_hosts_json(folder)
            except Failed as failure:
                trouble = str(failure)
        return SeenFolder(settings=settings, path=path, drops=drops, listed=listed, list_trouble=trouble)

    try:
        return await in_thread(work, LOOK_SECONDS)
    except TimeoutError:
        raise Failed(f"the folder {path} does not respond; is the server it is mounted from up?") from None


async def judge_drop(journal: Journal, found: FoundDrop) -> None:
    """Tell how old a host's files are, and what stands in them."""
    newest = max(stamp.mtime_ns for stamp in found.drop.values()) / 1e9
    old, interval = time.time() - newest, found.folder.settings.interval_seconds
    where = f"{plural(len(found.drop), 'file')} in {found.folder.path}"
    table, listed = found.folder.path / HOSTS_NAME, found.folder.listed
    if listed and found.host not in listed and "json" not in found.drop:
        journal.failed(
            "folder",
            f"{where}, but not in {HOSTS_NAME}",
            f"{found.host} is not in {table}, the list of hosts to show: add it, or remove the list",
        )
    elif found.folder.list_trouble:
        journal.failed("folder", f"{HOSTS_NAME} cannot be used", f"{table}: {found.folder.list_trouble}")
    elif old > SILENT_INTERVALS * interval:
        journal.failed(
            "folder",
            f"{where}, renewed {age(old)} ago",
            f"the files of {found.host} in {found.folder.path} were updated {age(old)} ago, but every "
            f"{interval:g} s is expected: check that the scripts still run there, and that the copying or "
            "the mount works",
        )
    else:
        journal.ok("folder", f"{where}, renewed {age(old)} ago")
    try:
        report = await in_thread(lambda: _read(found), LOOK_SECONDS)
    except TimeoutError:
        journal.failed(
            "parse", "no answer", f"the folder {found.folder.path} does not respond while it is read"
        )
    except StepFailed as failed:
        journal.failed("parse", failed.fact, failed.remedy)
    else:
        gpus = len(report.facts.devices)
        fact = f"{plural(gpus, 'GPU')}, {plural(len(report.table.processes), 'process')}"
        judge_reading(journal, "parse", found.host, fact=fact, gpus=gpus, problems=report.sample.problems)


def _read(found: FoundDrop) -> Report:
    if not {"json", "gpus"} & found.drop.keys():
        raise StepFailed(
            "no GPUs",
            f"{found.host}: there is neither {found.host}_gpus.csv nor {found.host}.json in "
            f"{found.folder.path}; check that the script that writes it runs",
        )
    kinds = ["json"] if "json" in found.drop else list(found.drop)
    files: dict[str, bytes] = {}
    with open_folder(found.folder.path) as folder:
        for kind in kinds:
            content = read_file(folder, found.host, kind, found.drop[kind])
            if content is None:
                raise StepFailed(
                    "being written",
                    f"a file of {found.host} in {found.folder.path} is being changed or cannot be read by "
                    "this user; try again in a moment",
                )
            files[kind] = content
    try:
        if "json" in files:
            return msgspec.json.decode(files["json"], type=Report)
        interval = found.folder.settings.interval_seconds
        return read_drop(
            files, host=found.host, wall=time.time(), interval_seconds=interval, scrub=scrub
        ).report
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise StepFailed(
            "not understood",
            f"{found.host}.json is not a report: {clean(str(error), 160)}; write it with `gpuherd agent "
            "--once` to a temporary file, then rename that",
        ) from error
    except Failed as failure:
        raise StepFailed("not understood", f"{found.host}: {failure}") from failure


def _id_of(name: str) -> str:
    try:
        return node_id_for(name)
    except Refused:
        return name
