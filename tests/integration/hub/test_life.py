"""Starting, stopping, restarting, and disks that fill up."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path

import pytest
from websockets.exceptions import ConnectionClosed

from gpuherd.api.hub import Hub
from gpuherd.api.settings import HubSettings
from gpuherd.model.errors import Failed, Misconfigured
from gpuherd.model.people import Viewer
from gpuherd.records.last_reports import LastReport, LastReports
from support.herd import WORKING
from support.hub import NodeClient, eventually, get_json, node_client, running_hub
from support.running import PATIENCE_SECONDS, free_port


class FullDisk(LastReports):
    """A store whose disk can be filled and emptied."""

    is_full = threading.Event()

    def save(self, batch: Iterable[LastReport]) -> None:
        if self.is_full.is_set():
            raise Failed("cannot save: no space left on device; free some space or check the disk")
        super().save(batch)


def test_a_full_disk_stops_acks_but_not_the_live_view_and_heals_by_itself(tmp_path: Path) -> None:
    async def story() -> None:
        FullDisk.is_full.clear()
        async with (
            running_hub(tmp_path, hub_options={"open_store": FullDisk}) as hub,
            node_client(hub, "a") as client,
        ):
            await client.wait_acked(await client.sample())
            acked = client.acked
            FullDisk.is_full.set()
            lost = await client.sample(WORKING)
            health = await eventually(lambda: h if (h := hub.health()).status == "degraded" else None)
            assert any("no space left" in reason for reason in health.reasons)
            assert (health.store.state, health.store.waiting_nodes) == ("failing", 1)
            await eventually(lambda: [d.availability.state for d in hub.fleet.devices()] == ["busy", "busy"])
            assert client.acked == acked
            # An agent that connects again is asked for what is not safe.
            again = NodeClient(hub.url, client.credential)
            assert (await again.open()).resume_after_seq == acked
            FullDisk.is_full.clear()
            await again.wait_acked(lost)
            await eventually(lambda: hub.health().status == "ok")
            await again.close()

    asyncio.run(story())


def test_a_restart_keeps_nodes_last_states_and_numbers(tmp_path: Path) -> None:
    async def story() -> None:
        async with running_hub(tmp_path) as hub:
            enrolled = await hub.admit("a")
            await hub.admit("never seen")
            client = NodeClient(hub.url, enrolled.credential)
            await client.open()
            await client.describe()
            seq = await client.sample(WORKING)
            await eventually(lambda: hub.fleet.node_health()[0].accepted == 1)
        # Stopping saves what is there and parts politely, whether or not it was acknowledged before.
        with pytest.raises(ConnectionClosed) as caught:
            await client.wait_acked(seq + 1)
        assert caught.value.rcvd is not None
        assert (caught.value.rcvd.code, client.acked) == (1001, seq)
        async with running_hub(tmp_path) as hub:
            nodes = {node.id: node for node in hub.fleet.view().nodes}
            assert set(nodes) == {"a", "never-seen"}
            assert nodes["never-seen"].state == "never"
            assert [device.sample.utilization_gpu for device in nodes["a"].devices] == [0.9, 0.9]
            assert nodes["a"].received_at is not None
            again = NodeClient(hub.url, enrolled.credential)
            assert (await again.open()).resume_after_seq == seq
            await again.close()

    asyncio.run(story())


ANYONE = Viewer(privacy="member")


def test_the_whole_herd_is_put_together_once_per_tick_however_many_ask(tmp_path: Path) -> None:
    async def story() -> None:
        async with running_hub(tmp_path) as hub:
            await hub.admit("one")
            first = await hub.fleet_view(ANYONE)
            assert await hub.fleet_view(ANYONE) is first
            assert [node.id for node in first.nodes] == ["one"]
            await hub.admit("two")  # who joins is seen at once
            assert [node.id for node in (await hub.fleet_view(ANYONE)).nodes] == ["one", "two"]
            await eventually(lambda: hub.fleet.tick_number > first.tick)
            assert (await hub.fleet_view(ANYONE)).tick > first.tick

    asyncio.run(story())


def test_a_removed_node_leaves_nothing_behind(tmp_path: Path) -> None:
    async def story() -> None:
        async with running_hub(tmp_path) as hub, node_client(hub, "a") as client:
            await client.wait_acked(await client.sample())
            hub._admitted._enrolment.remove("a", now=hub.clock.wall())
            await eventually(lambda: hub.fleet.view().nodes == ())
            # Its name is free again, and the new node starts from nothing.
            async with node_client(hub, "a") as other:
                await other.wait_acked(await other.sample())
                assert hub.fleet.node_health()[0].accepted == 1
            hub._admitted._enrolment.remove("a", now=hub.clock.wall())
            await eventually(lambda: hub.fleet.view().nodes == ())
        store = LastReports(tmp_path / "state.sqlite")
        assert store.load_all() == []
        store.close()

    asyncio.run(story())


def test_a_port_that_is_taken_is_one_sentence_even_if_by_a_hub(tmp_path: Path) -> None:
    async def story() -> None:
        async with running_hub(tmp_path / "one") as hub:
            listen = hub.url.removeprefix("http://").rstrip("/")
            with pytest.raises(Misconfigured, match="is in use, perhaps by another gpuherd"):
                async with Hub(HubSettings(state_dir=tmp_path / "two", listen=listen)):
                    pass
            assert (await get_json(f"{hub.url}api/v1/health"))["status"] == "ok"

    asyncio.run(story())


def test_a_state_folder_in_use_is_one_sentence_and_free_again_afterwards(tmp_path: Path) -> None:
    async def story() -> None:
        async with running_hub(tmp_path) as hub:
            with pytest.raises(
                Misconfigured, match=r"hub\.state_dir: another hub runs with .*; stop that hub"
            ):
                async with Hub(HubSettings(state_dir=tmp_path, listen="127.0.0.1:0")):
                    pass
            assert (await get_json(f"{hub.url}api/v1/health"))["status"] == "ok"
        async with running_hub(tmp_path):
            pass

    asyncio.run(story())


def test_an_address_that_is_not_ours_is_one_sentence(tmp_path: Path) -> None:
    async def story() -> None:
        settings = HubSettings(state_dir=tmp_path, listen="192.0.2.1:8470", public="read")
        with pytest.raises(Misconfigured, match=r"has no address 192\.0\.2\.1"):
            async with Hub(settings):
                pass

    asyncio.run(story())


def test_a_state_folder_that_cannot_be_made_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    async def story() -> None:
        with pytest.raises(Misconfigured, match=r"hub\.state_dir"):
            async with Hub(HubSettings(state_dir=tmp_path / "file" / "state", listen="127.0.0.1:0")):
                pass

    asyncio.run(story())


def test_slow_headers_are_cut_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gpuherd.api.server.SLOW_HEADER_MILLISECONDS", 300)

    async def story() -> None:
        async with running_hub(tmp_path) as hub:
            host, _, port = hub.url.removeprefix("http://").rstrip("/").partition(":")
            reader, writer = await asyncio.open_connection(host, int(port))
            writer.write(b"GET / HT")
            async with asyncio.timeout(PATIENCE_SECONDS):
                assert await reader.read() == b""
            writer.close()

    asyncio.run(story())


def test_slow_bodies_are_cut_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gpuherd.api.app.REQUEST_SECONDS", 0.2)

    async def story() -> None:
        async with running_hub(tmp_path) as hub:
            host, _, port = hub.url.removeprefix("http://").rstrip("/").partition(":")
            reader, writer = await asyncio.open_connection(host, int(port))
            writer.write(
                b"POST /api/v1/enroll HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                b"Content-Length: 100\r\n\r\n{"
            )
            async with asyncio.timeout(PATIENCE_SECONDS):
                assert (await reader.readline()).startswith(b"HTTP/1.1 408")
            writer.close()

    asyncio.run(story())


def test_the_command_runs_until_it_is_told_to_stop_and_administers_beside_it(tmp_path: Path) -> None:
    port = free_port()
    command = [sys.executable, "-c", "from gpuherd.cli import main; main()", "hub"]
    gpuherd = [*command, "--state-dir", str(tmp_path / "state")]
    quiet = {**os.environ, "XDG_CONFIG_HOME": str(tmp_path)}

    def admin(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([*gpuherd, *words], env=quiet, capture_output=True, text=True, check=False)

    with (
        subprocess.Popen(
            [*gpuherd, "run", "--listen", f"127.0.0.1:{port}"],
            env=quiet,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as process,
        ExitStack() as stack,
    ):
        # An assertion that fails below must not leave the test waiting for a hub that nobody stops.
        stack.callback(process.kill)
        assert process.stdout is not None
        assert process.stdout.readline() == f"gpuherd hub: http://127.0.0.1:{port}/\n"
        assert f": http://127.0.0.1:{port}/?setup#ghc_" in process.stdout.readline()
        token = admin("token", "create", "--uses", "3", "--expires", "10m").stdout.strip()
        assert token.startswith("ghj_")
        from aiohttp import ClientSession

        async def enrol() -> None:
            body = {"token": token, "hostname": "box"}
            async with (
                ClientSession() as http,
                http.post(f"http://127.0.0.1:{port}/api/v1/enroll", json=body) as answer,
            ):
                assert answer.status == 201

        asyncio.run(enrol())
        assert admin("node", "list").stdout.startswith("box\tbox\tenrolled ")
        again = admin("run", "--listen", f"127.0.0.1:{port}")
        assert again.returncode == 1
        assert "is in use" in again.stderr
        assert "Traceback" not in again.stderr
        assert admin("node", "remove", "box").stdout == "removed box\n"
        missing = admin("node", "remove", "box")
        assert (missing.returncode, "there is no node box" in missing.stderr) == (3, True)
        assert admin("token", "create", "--expires", "soon").returncode == 2
        process.send_signal(signal.SIGTERM)
        printed, log = process.communicate(timeout=PATIENCE_SECONDS)
        assert printed == ""
        # Once in a while, DuckDB's binding complains about itself while the interpreter ends, after the last line.
        lines = re.findall(r"^\d{4}-\d\d-\d\d [\d:,]+ (.+)$", log, re.MULTILINE)
        assert "Traceback" not in log
        assert lines[0].startswith("INFO hub started: gpuherd ")
        assert lines.count("INFO configuration: the command line") == 1
        assert lines.count("INFO node box enrolled from 127.0.0.1") == 1
        assert lines[-1] == "INFO hub stopped"
        assert not any(secret in log for secret in ("ghj_", "ghn_", "ghc_"))
        assert process.returncode == 0
