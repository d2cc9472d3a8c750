"""Drop files that nodes serve over HTTP, by the server that the older tool starts there."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from gpuherd.collect.scrub import scrub
from gpuherd.model.targets import Target
from gpuherd.sources import drop_csv, http_files
from gpuherd.sources.following import ContactFailed
from gpuherd.sources.http_files import HttpFilesWay
from gpuherd.sources.settings import HttpFilesSettings
from support.arrivals import KeptIntake
from support.herd import ManualClock
from support.old_tools import drop_files, serving
from support.running import PATIENCE_SECONDS, until


class _Handler(SimpleHTTPRequestHandler):
    def do_GET(self) -> None:
        self.server.asked.append(self.path)  # type: ignore[attr-defined]
        if self.server.status:  # type: ignore[attr-defined]
            self.send_error(self.server.status)  # type: ignore[attr-defined]
        else:
            super().do_GET()

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def served(folder: Path, status: int = 0) -> Iterator[tuple[int, list[str]]]:
    """Serve a folder as ``python -m SimpleHTTPServer`` does; gives the port and what is asked for."""
    server: Any = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Handler, directory=str(folder)))
    server.asked, server.status = [], status
    with serving(server) as port:
        yield port, server.asked


def way(**clocks: Any) -> HttpFilesWay:
    return HttpFilesWay(HttpFilesSettings(interval_seconds=0.2), scrub=scrub, **clocks)


async def failure_of(one: HttpFilesWay, port: int, name: str = "gpu01") -> ContactFailed:
    with pytest.raises(ContactFailed) as caught:
        async with asyncio.timeout(PATIENCE_SECONDS):
            await one.follow(Target(name=name, address="127.0.0.1", port=port), KeptIntake(name))
    await one.close()
    return caught.value


@pytest.mark.parametrize("host", ["gpu01", "gpu01.lip6.fr"])
def test_files_are_fetched_by_their_names_and_each_block_counts_once(tmp_path: Path, host: str) -> None:
    drop_files(tmp_path, host)
    (tmp_path / "evil.sh").write_text("never asked for")

    async def story() -> None:
        one, intake = way(), KeptIntake("gpu01.lip6.fr")
        with served(tmp_path) as (port, asked):
            target = Target(name="gpu01.lip6.fr", address="127.0.0.1", port=port)
            following = asyncio.ensure_future(one.follow(target, intake))
            await until(lambda: len(intake.reports) == 1, "the first report")
            seen = len(asked)
            await until(lambda: len(asked) > 3 * seen, "it is asked again and again")
            assert len(intake.reports) == 1, "nothing was new"
            drop_files(tmp_path, host)
            await until(lambda: len(intake.reports) == 2, "the next block")
            following.cancel()
        await one.close()
        report = intake.last
        assert [process.user for process in report.table.processes] == ["dropper"]
        assert report.facts.host.cpu_count == 16
        kinds = ("gpus.csv", "processes.csv", "users.csv", "status.csv", "cpus.csv", "disks.csv", "local.txt")
        names = {f"/{name}_{kind}" for name in (host, "gpu01") for kind in kinds}
        assert set(asked) <= names, "whatever else is served, the node does not choose what is fetched"

    asyncio.run(story())


@pytest.mark.promise("hostile-input-is-bounded")
def test_files_are_read_beside_the_event_loop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Reading 28 MiB of made-up lines takes seconds, in which nobody else would be served."""
    threads: list[int] = []

    def noting(*files: Any, **options: Any) -> Any:
        threads.append(threading.get_ident())
        return drop_csv.read_drop(*files, **options)

    monkeypatch.setattr(http_files, "read_drop", noting)
    drop_files(tmp_path, "gpu01")

    async def story() -> None:
        one, intake = way(), KeptIntake("gpu01")
        with served(tmp_path) as (port, _):
            target = Target(name="gpu01", address="127.0.0.1", port=port)
            following = asyncio.ensure_future(one.follow(target, intake))
            await until(lambda: len(intake.reports) == 1, "the first report")
            following.cancel()
        await one.close()

    asyncio.run(story())
    assert threads
    assert threading.get_ident() not in threads


@pytest.mark.promise("slow-files-hold-up-nobody")
def test_nodes_with_much_to_read_do_not_hold_up_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    may_end, begun = threading.Event(), threading.Event()

    def hanging(*files: Any, host: str, **options: Any) -> Any:
        if host != "good":
            assert not begun.is_set(), "the large ones are read one at a time"
            begun.set()
            assert may_end.wait(PATIENCE_SECONDS)
        return drop_csv.read_drop(*files, host=host, **options)

    monkeypatch.setattr(http_files, "read_drop", hanging)
    for host in ("good", "hostile1", "hostile2"):
        drop_files(tmp_path, host)
    for host in ("hostile1", "hostile2"):
        (tmp_path / f"{host}_disks.csv").write_text("x" * 256 * 2**10)

    async def story() -> None:
        one, intakes = way(), [KeptIntake(host) for host in ("hostile1", "hostile2", "good")]
        with served(tmp_path) as (port, _):
            targets = [Target(name=intake.node_id, address="127.0.0.1", port=port) for intake in intakes]
            following = []
            for target, intake in zip(targets, intakes, strict=True):
                following.append(asyncio.ensure_future(one.follow(target, intake)))
                await until(begun.is_set, "a large one is read")
            try:
                await until(lambda: len(intakes[2].reports) == 1, "the good one is read meanwhile")
                assert not intakes[0].reports + intakes[1].reports
            finally:
                for task in following:
                    task.cancel()
                may_end.set()
        await one.close()

    asyncio.run(story())


def test_a_file_that_is_being_written_is_fetched_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_files, "AGAIN_SECONDS", 0.05)
    monkeypatch.setattr(http_files, "TRIES", 1000)
    drop_files(tmp_path, "gpu01")
    whole = (tmp_path / "gpu01_gpus.csv").read_bytes()
    (tmp_path / "gpu01_gpus.csv").write_bytes(b"")

    async def story() -> None:
        one, intake = way(), KeptIntake("gpu01")
        with served(tmp_path) as (port, asked):
            target = Target(name="gpu01", address="127.0.0.1", port=port)
            following = asyncio.ensure_future(one.follow(target, intake))
            await until(lambda: len(asked) > 20, "the empty file is fetched again")
            (tmp_path / "gpu01_gpus.csv").write_bytes(whole)
            await until(lambda: len(intake.reports) == 1, "the whole one is taken")
            following.cancel()
        await one.close()

    asyncio.run(story())


def test_what_is_wrong_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_files, "AGAIN_SECONDS", 0.01)

    async def story() -> None:
        with served(tmp_path) as (port, _):
            missing = await failure_of(way(), port, "gpu01.lip6.fr")
            assert (missing.code, "serves no gpu01_gpus.csv" in str(missing)) == ("no_data", True)
            (tmp_path / "gpu01_gpus.csv").write_text("NVIDIA-SMI has failed\n")
            garbled = await failure_of(way(), port)
            assert (garbled.code, "gpu01_gpus.csv has no line" in str(garbled)) == ("garbled", True)
        with served(tmp_path, status=500) as (port, _):
            assert "responds to gpu01_gpus.csv with 500" in str(await failure_of(way(), port))
        assert (await failure_of(way(), port)).code == "unreachable"

    asyncio.run(story())


def test_files_that_stay_the_same_are_old(tmp_path: Path) -> None:
    drop_files(tmp_path, "gpu01")
    clock = ManualClock()

    async def story() -> None:
        one, intake = way(monotonic=clock.monotonic), KeptIntake("gpu01")
        with served(tmp_path) as (port, _):
            target = Target(name="gpu01", address="127.0.0.1", port=port)
            following = asyncio.ensure_future(one.follow(target, intake))
            await until(lambda: len(intake.reports) == 1, "the first report")
            clock.advance(61)
            with pytest.raises(ContactFailed, match="contain nothing new") as caught:
                await following
            assert caught.value.code == "no_data"
        await one.close()

    asyncio.run(story())
