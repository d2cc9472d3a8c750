"""gpuherd pick against a real hub."""

from __future__ import annotations

import asyncio
import json
import socket
from pathlib import Path

from msgspec import structs

from gpuherd.model.hosts import HostFacts
from support.booking_hub import BookingHub, booking_hub, report_of
from support.chooser import Chooser, living_hub
from support.herd import GIB, gpu
from support.hub import eventually


async def host_reports(lab: BookingHub, node: str, *, name: str, users: dict[int, str] | None = None) -> None:
    """Let a node report under a host name of its own, with a large and a small GPU."""
    report = report_of(
        gpu(0, uuid="GPU-large"), gpu(1, uuid="GPU-small", memory_total_bytes=40 * GIB), users=users
    )
    facts = structs.replace(report.facts, host=HostFacts(hostname=name))
    await lab.report(node, structs.replace(report, facts=facts))


def test_a_day_of_picking(tmp_path: Path) -> None:
    async def day() -> None:
        async with living_hub(tmp_path / "hub") as lab:
            ann, bob = await lab.person("ann"), await lab.person("bob")
            shell = Chooser(lab, tmp_path / "ann", ann)

            code, said, told = await shell.run("pick")
            assert (code, said) == (3, "")
            assert f"the hub has no node called {socket.gethostname()}" in told
            await host_reports(lab, "n3", name=f"{socket.gethostname()}.example.org")
            assert await shell.run("pick") == (0, "CUDA_VISIBLE_DEVICES=GPU-small\n", "")
            assert await shell.run("pick", "--mem", "80G") == (0, "CUDA_VISIBLE_DEVICES=GPU-large\n", "")
            assert await shell.run("pick", "-n", "2", "--node", "n3") == (
                0,
                "n3 CUDA_VISIBLE_DEVICES=GPU-large,GPU-small\n",
                "",
            )
            await host_reports(lab, "n4", name=f"{socket.gethostname()}.example.net")
            code, said, told = await shell.run("pick")
            assert (code, said) == (3, "")
            assert "matches several nodes: n3, n4; choose one with --node" in told

            code, said, _ = await shell.run(
                "pick", "-n", "3", "--type", "a100", "--same-node", "--anywhere", "--json"
            )
            found = json.loads(said)
            assert (code, [node["name"] for node in found["nodes"]]) == (0, ["n1"])
            assert found["nodes"][0]["environment"]["CUDA_VISIBLE_DEVICES"].count("GPU-") == 3
            assert found["booking"] is None

            # What others have booked within the time is not taken; what one has booked oneself comes first.
            await bob.book(("n2", "GPU-0"), start="in 1h", end="2h")
            assert (await shell.run("pick", "--node", "n2"))[1] == "n2 CUDA_VISIBLE_DEVICES=GPU-1\n"
            await ann.book(("n2", "GPU-1"), end="2h")
            await eventually(lambda: lab.hub.fleet.view().nodes[1].devices[1].availability.state == "booked")
            assert (await shell.run("pick", "--anywhere"))[1] == "n2 CUDA_VISIBLE_DEVICES=GPU-1\n"
            code, said, told = await shell.run("pick", "-n", "2", "--node", "n2")
            assert (code, said) == (3, "")
            assert told == "gpuherd: 2 GPUs requested on n2, 1 available; 1 booked within the time\n"
            assert (await shell.run("pick", "-n", "2", "--node", "n2", "--for", "30m"))[0] == 0
            stranger = Chooser(lab, tmp_path / "bob", bob)
            assert (await stranger.run("pick", "--node", "n2"))[1] == "n2 CUDA_VISIBLE_DEVICES=GPU-0\n"
            assert (await stranger.run("pick", "--node", "n2", "-n", "2"))[0] == 3

            await host_reports(lab, "n3", name="elsewhere", users={0: "cleo", 1: "cleo"})
            assert "none available; 2 busy" in (await shell.run("pick", "--node", "n3"))[2]
            assert (
                "no such GPU in the herd (1 h100 requested"
                in (await shell.run("pick", "--anywhere", "--type", "h100"))[2]
            )

    asyncio.run(day())


def test_nothing_is_picked_by_old_news(tmp_path: Path) -> None:
    async def day() -> None:
        async with booking_hub(tmp_path / "hub") as lab:
            shell = Chooser(lab, tmp_path / "ann", await lab.person("ann"))
            assert (await shell.run("pick", "--anywhere"))[0] == 0
            for node in ("n1", "n2"):
                cards = [gpu(index) for index in range(4 if node == "n1" else 2)]
                lab.hub.fleet.accept_report(node, report_of(*cards), 0.05)
            await eventually(lambda: all(node.state != "live" for node in lab.hub.fleet.view().nodes))
            code, said, told = await shell.run("pick", "--anywhere")
            assert (code, said) == (3, "")
            assert "none available; 6 stale" in told

    asyncio.run(day())


def test_slices_are_picked_by_name_alone(tmp_path: Path) -> None:
    async def day() -> None:
        async with living_hub(tmp_path / "hub") as lab:
            shell = Chooser(lab, tmp_path / "ann", await lab.person("ann"))
            part = gpu(
                0,
                uuid="MIG-11f0",
                parent_uuid="GPU-m",
                kind="slice",
                profile="3g.40gb",
                memory_total_bytes=40 * GIB,
            )
            await lab.report("n3", report_of(gpu(0, uuid="GPU-m", is_partitioned=True), part))
            code, _, told = await shell.run("pick", "--node", "n3")
            assert (code, "to include slices, use --type mig" in told) == (3, True)
            assert (await shell.run("pick", "--type", "3g.40gb", "--anywhere"))[1] == (
                "n3 CUDA_VISIBLE_DEVICES=MIG-11f0\n"
            )

    asyncio.run(day())


def test_a_hub_that_is_not_there_and_one_that_lets_nobody_look(tmp_path: Path) -> None:
    async def day() -> None:
        async with living_hub(tmp_path / "hub") as lab:
            await lab.person("ann")  # from now on a login is needed
            stranger = Chooser(lab, tmp_path / "stranger")
            code, said, told = await stranger.run("pick", "--anywhere")
            assert (code, said) == (4, "")
            assert "log in with: gpuherd login" in told
            code, said, told = await stranger.run("pick", GPUHERD_HUB="http://127.0.0.1:9")
            assert (code, said, told) == (
                1,
                "",
                "gpuherd: http://127.0.0.1:9 cannot be reached: nothing listens there\n",
            )

    asyncio.run(day())
