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
from gpuherd.wiring.config import load
from gpuherd.wiring.outfit import configured_hub
from integration.doctor.conftest import Doctor, Findings, SshNode
from support.agent_hub import until
from support.authority import Authority, Certificate
from support.hub import node_client
from support.hub_process import HubProcess, StubbornNode
from support.old_tools import drop_files, posting
from support.running import free_port


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
        assert found.fact("listed") == "in no list: it has enrolled and is known to the hub as gpu05"
        assert found.fact("contact").startswith("live: its agent dials this hub; last report ")
        assert found.fact("frames").endswith("none refused")

    asyncio.run(story())


async def _when_live(doctor: Doctor, name: str) -> Findings:
    """Examine until the first report has come."""
    async with asyncio.timeout(20):
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
            "gpu50 is in no list (there is no [[nodes]] table in the configuration) and the hub does not know it "
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
            "gpu01 of nodes[0].hosts is left out by the hub: gpu01 is enrolled and reports by itself; take it off the "
            "list, or remove it"
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
        assert found.sentences == ["gpu01: all is well."]
        assert found.fact("hub").startswith("shows it live, last report ")
        assert everything.states["hub"] == everything.states["state folder"] == "ok"
        assert everything.sentences == ["All is well."]

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
            "gpu01 can be reached now, but not yet by the running hub, which says: gpu01:"
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
        assert "was started with another --listen than hub.listen says" in found.sentences[0]

    asyncio.run(story())


def test_a_machine_without_anything(doctor: Doctor) -> None:
    doctor.configure("")
    found = asyncio.run(doctor.look())
    assert found.sentences == ["All is well."]
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
        assert found.sentences == ["old01: all is well."]
        assert found.states["clock"] == "skipped", "gpustat does not tell its time"
        assert "what was posted to legacy.gpustat" in other.sentences[0]
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
            sentence.startswith("Also: the hub refuses what gpu05 sends: ") for sentence in found.sentences
        )

    asyncio.run(story())


def test_a_full_disk(doctor: Doctor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gpuherd.wiring.doctor.everything.LEAST_FREE_BYTES", 10**18)
    doctor.configure('[[nodes]]\nhosts = ["gpu01=127.0.0.1:1"]\nreach = { by = "ssh" }\n')
    doctor.state_dir.mkdir()
    found = asyncio.run(doctor.look())
    assert found.broken[0] == "state folder"
    assert "make room, or what nodes send is not kept" in found.sentences[1]


def test_a_hub_of_another_user(doctor: Doctor, ssh_node: SshNode) -> None:
    doctor.state_dir.mkdir()
    os.chown(doctor.state_dir, 1, 1)  # daemon, on any Linux
    found = doctor("gpu01", ssh_node.table())
    assert "belongs to daemon" in found.fact("user")
    assert found.fact("user").endswith("sudo -u daemon gpuherd doctor gpu01")
    assert found.sentences == ["gpu01: all is well."]


def _tls(certificate: Certificate) -> dict[str, str]:
    return {"tls_certificate": str(certificate.file), "tls_key": str(certificate.key)}
