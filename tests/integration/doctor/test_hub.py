"""A running hub: what it says of nodes that report by themselves, and of itself."""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from gpuherd.api.enrolling import open_enrolment
from gpuherd.api.open_records import open_hub_records
from gpuherd.model.people import Actor
from gpuherd.records.database import open_records
from gpuherd.records.leases import LeaseRecords
from gpuherd.wiring.config import load
from gpuherd.wiring.doctor.hub_api import HubApi, HubHealth, HubNode, _List
from gpuherd.wiring.outfit import configured_hub
from integration.doctor.conftest import Doctor, Findings, SshNode
from support.authority import Authority, Certificate
from support.booking_hub import report_of
from support.herd import gpu
from support.hub import node_client
from support.hub_process import HubProcess, StubbornNode
from support.old_tools import drop_files, posting
from support.postgresql import Postgresql
from support.records import postgresql
from support.running import PATIENCE_SECONDS, free_port, until

__all__ = ["postgresql"]


def enrol(doctor: Doctor, name: str) -> str:
    """Give a node a credential, as the command line does."""
    with contextlib.closing(open_enrolment(load(doctor.config_file).hub)) as enrolment:
        return enrolment.admit(name, now=time.time()).credential


def add_account(doctor: Doctor) -> None:
    """Make an account, as the command line does."""
    by = Actor(account_id=None, label="test")
    with contextlib.closing(open_hub_records(load(doctor.config_file).hub)) as records:
        records.people.create_account(name="ada", display_name="Ada", role="admin", now=time.time(), by=by)


@asynccontextmanager
async def hub_process(doctor: Doctor) -> AsyncIterator[HubProcess]:
    hub = HubProcess(doctor.state_dir)
    hub.port, hub.url = doctor.port, f"http://127.0.0.1:{doctor.port}/"
    await hub.start()
    try:
        yield hub
    finally:
        await hub.stop()


@pytest.mark.parametrize("has_accounts", [False, True])
def test_an_enrolled_node_that_reports(doctor: Doctor, has_accounts: bool) -> None:
    async def story() -> None:
        doctor.configure("")
        credential = enrol(doctor, "gpu05")
        if has_accounts:  # then nothing is shown without a login, but to who may read the state folder
            add_account(doctor)
        async with hub_process(doctor) as hub:
            node = StubbornNode(hub.url, credential, every_seconds=0.2)
            task = asyncio.create_task(node.run())
            try:
                found = await _when_live(doctor, "gpu05")
            finally:
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
        assert found.broken == ["clock"], "this node's frames are dated long ago"
        assert found.sentences[0].startswith("gpu05: the clock of gpu05 is ")
        assert found.states["freshness"] == found.states["parse"] == "ok"
        assert found.fact("listed") == "not in any list: it has enrolled and is known to the hub as gpu05"
        assert found.fact("contact").startswith("live: its agent connects to this hub; last report ")
        assert found.fact("frames").endswith("none rejected")

    asyncio.run(story())


async def _when_live(doctor: Doctor, name: str) -> Findings:
    """Examine until the first report has come."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while True:
            found = await doctor.look(name)
            if found.states["contact"] == "ok":
                return found
            await asyncio.sleep(0.1)


def test_an_enrolled_node_that_never_reported(doctor: Doctor) -> None:
    async def story() -> None:
        doctor.configure("")
        enrol(doctor, "gpu05")
        async with hub_process(doctor):
            found = await doctor.look("gpu05")
        assert found.broken == ["contact"]
        (sentence,) = found.sentences
        assert sentence.startswith(
            "gpu05 is known to the hub but has never reported: run `gpuherd doctor` on that"
        )

    asyncio.run(story())


def test_a_node_that_nobody_knows(doctor: Doctor) -> None:
    async def story() -> None:
        doctor.configure("")
        enrol(doctor, "gpu05")
        async with hub_process(doctor):
            found = await doctor.look("gpu50")
        assert found.sentences[0] == (
            "gpu50 is not in any list (there is no [[nodes]] table in the configuration) and the hub does not know it "
            "either; did you mean gpu05?"
        )

    asyncio.run(story())


def test_a_listed_node_that_is_enrolled_as_well(doctor: Doctor, ssh_node: SshNode) -> None:
    async def story() -> None:
        doctor.configure(ssh_node.table())
        enrol(doctor, "gpu01")
        async with configured_hub(load(doctor.config_file)):
            found = await doctor.look("gpu01")
        assert found.broken[0] == "listed"
        assert found.sentences[0] == (
            "gpu01 of nodes[0].hosts is ignored by the hub: gpu01 is enrolled and reports on its own; remove it from "
            "the list, or remove the enrolled node"
        )

    asyncio.run(story())


def test_what_the_hub_shows_of_a_listed_node(doctor: Doctor, ssh_node: SshNode) -> None:
    async def story() -> None:
        doctor.configure(ssh_node.table())
        async with configured_hub(load(doctor.config_file)) as hub:
            await until(
                lambda: (view := hub.fleet.node("gpu01")) is not None and view.state == "live", "live"
            )
            found = await doctor.look("gpu01")
            everything = await doctor.look()
        assert found.sentences == ["gpu01: no problems found."]
        assert found.fact("hub").startswith("shows it live, last report ")
        assert everything.states["hub"] == everything.states["state folder"] == "ok"
        assert everything.sentences == ["No problems found."]

    asyncio.run(story())


def test_a_hub_that_has_not_looked_yet_is_given_time(
    doctor: Doctor, ssh_node: SshNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = 0

    async def late(api: HubApi, node_id: str) -> HubNode | None:
        nonlocal asked
        asked += 1
        return HubNode(id=node_id, name=node_id, way="ssh") if asked < 3 else await ask(api, node_id)

    async def story() -> None:
        doctor.configure(ssh_node.table())
        async with configured_hub(load(doctor.config_file)):
            found = await doctor.look("gpu01")
        assert found.sentences == ["gpu01: no problems found."]
        assert asked >= 3

    ask = HubApi.node
    monkeypatch.setattr(HubApi, "node", late)
    asyncio.run(story())


def test_a_hub_that_cannot_do_what_the_user_can(doctor: Doctor, ssh_node: SshNode) -> None:
    async def story() -> None:
        lines = ssh_node.known_hosts.read_text()
        ssh_node.known_hosts.write_text("")
        doctor.configure(ssh_node.table())
        async with configured_hub(load(doctor.config_file)) as hub:
            await until(lambda: (view := hub.fleet.node("gpu01")) is not None and bool(view.notes), "a note")
            ssh_node.known_hosts.write_text(lines)
            found = await doctor.look("gpu01")
        assert found.broken == ["hub"]
        assert found.sentences[0].startswith(
            "gpu01 can be reached now, but the running hub has not reached it yet. It reports: gpu01:"
        )

    asyncio.run(story())


def test_a_hub_that_listens_elsewhere(doctor: Doctor) -> None:
    async def story() -> None:
        doctor.configure("")
        hub = HubProcess(doctor.state_dir)
        await hub.start()
        try:
            found = await doctor.look()
        finally:
            await hub.stop()
        assert found.states["hub"] == "failed"
        assert "was started with a --listen other than hub.listen" in found.sentences[0]

    asyncio.run(story())


def test_a_machine_without_anything(doctor: Doctor) -> None:
    doctor.configure("")
    found = asyncio.run(doctor.look())
    assert found.sentences == ["No problems found."]
    assert found.fact("hub") == "none on this machine"
    assert found.fact("own GPUs") == "none here"


def test_a_hub_that_serves_https(doctor: Doctor, authority: Authority) -> None:
    async def story() -> None:
        doctor.configure("", **_tls(authority.issue("DNS:gpus.example.org")))
        async with configured_hub(load(doctor.config_file)):
            found = await doctor.look()
        assert found.states["hub"] == "ok"
        assert f"at https://127.0.0.1:{doctor.port}/" in found.fact("hub")

    asyncio.run(story())


def test_a_node_that_posts_gpustat(doctor: Doctor) -> None:
    async def story() -> None:
        port = free_port()
        doctor.configure(f'[legacy.gpustat]\nlisten = "127.0.0.1:{port}"\nnetworks = ["127.0.0.0/8"]\n')
        async with configured_hub(load(doctor.config_file)) as hub:
            with posting(port, "old01"):
                await until(
                    lambda: (view := hub.fleet.node("old01")) is not None and view.state == "live", "live"
                )
                found = await doctor.look("old01")
            other = await doctor.look("old02")
            everything = await doctor.look()
        assert found.fact("contact").startswith("live: it posts gpustat's JSON; last report ")
        assert found.sentences == ["old01: no problems found."]
        assert found.states["clock"] == "skipped", "gpustat does not report its time"
        assert "the posts to legacy.gpustat" in other.sentences[0]
        assert everything.fact("door") == f"legacy.gpustat on 127.0.0.1:{port}, for 127.0.0.0/8"

    asyncio.run(story())


def test_a_node_whose_files_a_hub_reads(doctor: Doctor, tmp_path: Path) -> None:
    async def story() -> None:
        folder = tmp_path / "drops"
        folder.mkdir()
        drop_files(folder, "lab7")
        doctor.configure(f'[[folders]]\npath = "{folder}"\n')  # every 20 s: not waited for
        async with configured_hub(load(doctor.config_file)) as hub:
            await until(lambda: (view := hub.fleet.node("lab7")) is not None and view.state == "live", "live")
            found = await doctor.look("lab7")
            for file in folder.iterdir():
                file.unlink()
            gone = await doctor.look("lab7")
        assert found.states["folder"] == found.states["contact"] == "ok"
        assert gone.broken[0] == "folder"
        assert gone.sentences[0].startswith("lab7: there are no files of lab7 in ")

    asyncio.run(story())


def test_frames_that_the_hub_refuses(doctor: Doctor) -> None:
    async def story() -> None:
        doctor.configure("")
        async with configured_hub(load(doctor.config_file)) as hub, node_client(hub, "gpu05") as node:
            await node.send(b"no frame at all")
            await node.notice()
            found = await doctor.look("gpu05")
        assert "frames" in found.broken
        assert any(
            sentence.startswith("Also: the hub rejects the reports of gpu05: ")
            for sentence in found.sentences
        )

    asyncio.run(story())


def test_a_missing_gpu(doctor: Doctor) -> None:
    async def story() -> None:
        doctor.configure("")
        async with configured_hub(load(doctor.config_file)) as hub:
            await hub.admit("gpu05")
            pulled = gpu(1, serial="132", pci_bus_id="00000000:3B:00.0")
            hub.fleet.accept_report("gpu05", report_of(gpu(0), pulled))
            hub.fleet.accept_report("gpu05", report_of(gpu(0)))
            await until(
                lambda: (view := hub.fleet.node("gpu05")) is not None and view.state == "live", "live"
            )
            found = await doctor.look("gpu05")
        assert found.states["parse"] == "failed"
        [sentence] = [each for each in found.sentences if "missing" in each]
        assert "1 GPU missing since " in sentence
        assert "GPU 1, A100-SXM4-80GB, serial 132, slot 0000:3b:00.0" in sentence

    asyncio.run(story())


def test_a_full_disk(doctor: Doctor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gpuherd.wiring.doctor.state_folder.LEAST_FREE_BYTES", 10**18)
    doctor.configure('[[nodes]]\nhosts = ["gpu01=127.0.0.1:1"]\nreach = { by = "ssh" }\n')
    doctor.state_dir.mkdir()
    found = asyncio.run(doctor.look())
    assert found.broken[0] == "state folder"
    assert "free some space, otherwise reports are not saved" in found.sentences[1]


@pytest.fixture
def used(doctor: Doctor) -> Doctor:
    """A machine on which a hub has run."""
    doctor.configure("")
    enrol(doctor, "gpu05")
    (doctor.state_dir / "hub.lock").touch(mode=0o600)
    return doctor


def told_of_folder(doctor: Doctor) -> list[tuple[str, str | None]]:
    found = asyncio.run(doctor.look())
    return [(step.fact, step.remedy) for step in found.steps if step.name == "state folder"]


def test_a_folder_that_is_as_it_should_be(used: Doctor) -> None:
    assert used.state_dir.stat().st_mode & 0o777 == 0o700
    [(fact, remedy)] = told_of_folder(used)
    assert fact.startswith(f"{used.state_dir}, ")
    assert remedy is None


def test_a_folder_that_others_can_write_and_read(used: Doctor) -> None:
    folder = used.state_dir
    folder.chmod(0o777)
    (folder / "records.sqlite").chmod(0o644)
    assert told_of_folder(used) == [
        (
            "writable by others",
            f"other users can write to {folder} (mode 0777), and could replace the hub's database: chmod go-w {folder}",
        ),
        (
            "readable by others",
            f"every user can read {folder / 'records.sqlite'}, which may contain secrets: chmod -R o-rwx {folder}",
        ),
    ]
    folder.chmod(0o700)
    [(_, remedy)] = told_of_folder(used)
    assert remedy is None, "what nobody else can enter, nobody else can read"


def test_a_file_below_that_others_can_read(used: Doctor) -> None:
    used.state_dir.chmod(0o755)
    file = used.state_dir / "history" / "file"
    file.parent.mkdir()
    file.touch()
    file.parent.chmod(0o755)
    file.chmod(0o644)
    [(fact, remedy)] = told_of_folder(used)
    assert fact == "readable by others"
    assert str(file) in str(remedy)
    file.parent.chmod(0o700)
    [(_, remedy)] = told_of_folder(used)
    assert remedy is None


def test_a_damaged_file_that_was_set_aside(used: Doctor) -> None:
    damaged = used.state_dir / "state.sqlite.damaged"
    damaged.write_bytes(b"no database")
    [(fact, remedy)] = told_of_folder(used)
    assert fact == "a damaged file was moved aside"
    assert str(remedy).endswith(f"check the disk, then delete {damaged}")


def test_hubs_that_run_on_the_same_database(used: Doctor, postgresql: Postgresql) -> None:
    def fact() -> str:
        return asyncio.run(used.look()).fact("records")

    with postgresql.database() as url:
        used.configure("", records_url=url)
        assert fact().endswith("empty: its tables are created at the hub's first start")
        engine = open_records(url)
        assert fact().endswith("no hub is using it")
        lease = LeaseRecords(engine, lease_id="one", host="other-machine", pid=7)
        lease.renew()
        assert "in use by the hub on other-machine (process 7, " in fact()
        lease.end()
        engine.dispose()
        assert fact().endswith("no hub is using it")
    found = asyncio.run(used.look())
    assert "records" in found.broken
    assert any("cannot open the database at postgresql" in sentence for sentence in found.sentences)


def test_a_file_of_records_that_is_not_there_is_not_made(used: Doctor, tmp_path: Path) -> None:
    file = tmp_path / "elsewhere.sqlite"
    used.configure("", records_url=f"sqlite:///{file}")
    assert asyncio.run(used.look()).fact("records").endswith("created at the hub's first start")
    assert not file.exists()


def test_hosts_that_are_left_out_of_a_folder(doctor: Doctor, tmp_path: Path) -> None:
    async def story() -> None:
        folder = tmp_path / "drops"
        folder.mkdir()
        drop_files(folder, "lab1")
        doctor.configure(f'[[folders]]\npath = "{folder}"\nmax_nodes = 1\ninterval_seconds = 1\n')
        async with configured_hub(load(doctor.config_file)) as hub:
            await until(lambda: hub.fleet.node("lab1") is not None, "the first host")
            drop_files(folder, "lab2")
            await until(lambda: any("not shown" in reason for reason in hub.health().reasons), "too many")
            everything, one = await doctor.look(), await doctor.look("lab1")
            drop_files(folder, "lab2")
            other = await doctor.look("lab2")
        left_out = f"the folder {folder} has files of 2 hosts, 1 more than folders.max_nodes"
        assert [sentence for sentence in everything.sentences if left_out in sentence]
        assert "hub" not in one.states
        assert other.broken == ["hub"]
        assert left_out in other.sentences[0]

    asyncio.run(story())


def test_every_reason_is_told(doctor: Doctor, monkeypatch: pytest.MonkeyPatch) -> None:
    async def health(_: HubApi) -> HubHealth:
        lists = (_List(name="hosts.txt", refused={"gpu09": "the name is taken"}, trouble="cannot be read"),)
        reasons = ("hosts.txt: cannot be read", *(f"reason {number}" for number in range(count)))
        return HubHealth(
            status="degraded", version="1", time=0.0, uptime_seconds=1.0, reasons=reasons, lists=lists
        )

    monkeypatch.setattr(HubApi, "health", health)
    monkeypatch.setattr(HubApi, "nodes", lambda _: asyncio.sleep(0, ()))
    doctor.configure("")
    for count in (3, 30):
        found = asyncio.run(doctor.look())
        told = [step.remedy for step in found.steps if step.name == "hub"]
        wanted = ["hosts.txt: cannot be read", *(f"reason {number}" for number in range(count))]
        wanted.append("gpu09 in hosts.txt is ignored: the name is taken")
        shown = [f"the hub is degraded: {reason}" for reason in wanted[:10]]
        if count == 30:
            shown[-1] += f" (and 22 more reasons, see http://127.0.0.1:{doctor.port}/api/v1/health)"
        assert told == shown


def test_a_hub_of_another_user(doctor: Doctor, ssh_node: SshNode) -> None:
    doctor.state_dir.mkdir()
    os.chown(doctor.state_dir, 1, 1)  # daemon, on any Linux
    found = doctor("gpu01", ssh_node.table())
    assert "belongs to daemon" in found.fact("user")
    assert found.fact("user").endswith("sudo -u daemon gpuherd doctor gpu01")
    assert found.sentences == ["gpu01: no problems found."]


def _tls(certificate: Certificate) -> dict[str, str]:
    return {"tls_certificate": str(certificate.file), "tls_key": str(certificate.key)}


def test_who_sees_names_without_a_login_is_said(doctor: Doctor) -> None:
    doctor.configure("")
    assert "who sees names" not in doctor().states
    doctor.configure('public_networks = ["192.168.0.0/24", "10.0.0.7"]', public="names")
    found = doctor()
    assert found.states["who sees names"] == "ok"
    assert found.fact("who sees names") == (
        "everyone in 192.168.0.0/24, 10.0.0.7, without a login (hub.public)"
    )
