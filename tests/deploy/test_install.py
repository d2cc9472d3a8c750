"""`gpuherd install` on a machine with systemd: hub and agent behind their walls, hung, killed, rebooted, removed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from support.machine import Lan, Machine, booted
from support.package import layer_with_gpuherd
from support.service_machine import fleet, give_gpus, is_page_there, main_pid, node_named, take_for_real

GPUHERD = "/opt/gpuherd/bin/gpuherd"
HUB, AGENT = "gpuherd-hub.service", "gpuherd-agent.service"
TOKEN = "/root/token"


class Herd:
    """A machine that is hub and node, and how its services were installed."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.hub_options = ("--listen", "0.0.0.0:8470")
        self.agent_options = ("--hub", f"http://{machine.address}:8470", "--join-token-file", TOKEN)

    def install(self, *arguments: str) -> dict[str, list[str]]:
        told: dict[str, list[str]] = json.loads(self.machine.tell(GPUHERD, "install", *arguments, "--json"))
        return told


@pytest.fixture(scope="module")
def herd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Herd]:
    """Ada's job runs on the first GPU, in a folder that nobody else can enter."""
    folder = tmp_path_factory.mktemp("herd")
    with Lan() as lan, booted(folder, lan, name="gpu01", layers=[layer_with_gpuherd()]) as machine:
        herd = Herd(machine)
        machine.run("useradd", "--create-home", "ada")
        job = "cd /home/ada && exec -a train python3 -c 'import time; time.sleep(3600)' --lr 0.1"
        machine.run("runuser", "-u", "ada", "--", "bash", "-c", f"({job}) >/dev/null 2>&1 </dev/null &")
        pids = machine.tell("pgrep", "--uid", "ada", "--full", "time.sleep").split()
        give_gpus(machine, pids=[int(pid) for pid in pids])
        take_for_real(machine, "/opt/gpuherd")
        # A watchdog of a minute would make a test of minutes; one of a second bites who is only slow.
        for unit in (HUB, AGENT):
            machine.write(
                f"/etc/systemd/system/{unit}.d/quick.conf", "[Service]\nWatchdogSec=6\nRestartSec=0\n"
            )
        herd.install("hub", *herd.hub_options)
        machine.write(TOKEN, machine.tell(GPUHERD, "token", "create"))
        herd.install("agent", *herd.agent_options)
        yield herd


def live_node(herd: Herd) -> dict[str, Any]:
    found: dict[str, Any] | None = None

    def is_live() -> bool:
        nonlocal found
        found = node_named(herd.machine, "gpu01")
        return found is not None and len(found["devices"]) == 8

    herd.machine.until(is_live, f"gpu01 is live: {herd.machine.journal(AGENT)}")
    assert found is not None
    return found


def status(herd: Herd, unit: str) -> str:
    return herd.machine.tell("systemctl", "show", "--property=StatusText", "--value", unit)


def restarts(herd: Herd, unit: str) -> int:
    return int(herd.machine.tell("systemctl", "show", "--property=NRestarts", "--value", unit))


def test_the_page_answers_and_the_node_is_live(herd: Herd) -> None:
    assert is_page_there(herd.machine)
    live_node(herd)
    herd.machine.until(lambda: "1 live" in status(herd, HUB), "the hub tells systemd of its node")
    assert status(herd, AGENT) == f"reporting to http://{herd.machine.address}:8470"


def test_the_agent_sees_other_users_processes(herd: Herd) -> None:
    (process,) = live_node(herd)["devices"][0]["processes"]
    assert process["user"] == "ada"
    assert "--lr 0.1" in process["command"]


def test_the_agent_sees_the_machine_around_its_gpus(herd: Herd) -> None:
    host = live_node(herd)["host"]
    assert herd.machine.address in json.dumps(host)


def test_people_log_in_behind_the_walls(herd: Herd) -> None:
    machine = herd.machine
    machine.write("/root/ada", "correct horse battery staple", mode="0600")
    machine.run(GPUHERD, "user", "create", "ada", "--role", "admin", "--password-file", "/root/ada")
    machine.run(
        GPUHERD, "login", "--hub", "http://127.0.0.1:8470", "--name", "ada", "--password-file", "/root/ada"
    )
    assert "gpu01" in machine.tell(GPUHERD, "status")


def test_services_have_no_rights(herd: Herd) -> None:
    for unit in (HUB, AGENT):
        facts = herd.machine.read(f"/proc/{main_pid(herd.machine, unit)}/status")
        fields = dict(line.split(":\t", 1) for line in facts.splitlines() if ":\t" in line)
        assert "0" not in fields["Uid"].split()
        assert {int(fields[name], 16) for name in ("CapEff", "CapPrm", "CapBnd", "CapAmb")} == {0}
        assert fields["NoNewPrivs"] == "1"
        assert fields["Seccomp"] == "2"


def test_the_token_is_gone_and_no_secret_is_in_the_journal(herd: Herd) -> None:
    token = herd.machine.read(TOKEN).strip()
    assert herd.machine.run("test", "-e", "/etc/gpuherd/join-token", check=False).returncode == 1
    said = herd.machine.tell("journalctl", "--no-pager", "-o", "cat")
    assert token not in said
    assert "#ghc_" not in said  # the link that makes the first admin


def test_a_second_run_changes_nothing(herd: Herd) -> None:
    before = main_pid(herd.machine, HUB), main_pid(herd.machine, AGENT)
    assert herd.install("hub", *herd.hub_options)["changed"] == []
    assert herd.install("agent", *herd.agent_options)["changed"] == []
    assert herd.install("hub", "--check")["changed"] == []
    assert (main_pid(herd.machine, HUB), main_pid(herd.machine, AGENT)) == before


def test_root_s_commands_leave_nothing_of_root_s_in_the_hub_s_folder(herd: Herd) -> None:
    machine = herd.machine
    machine.write("/root/password", "correct horse battery staple", mode="0600")
    machine.run(GPUHERD, "user", "create", "grace", "--password-file", "/root/password")
    machine.run(GPUHERD, "hub", "node", "secret", "gpu07")
    machine.run(GPUHERD, "backup", "/root/records")
    assert machine.tell("stat", "-c", "%U %a", "/root/records") == "root 600"
    machine.run("systemctl", "stop", HUB)
    machine.run(GPUHERD, "restore", "/root/records", "--replace")
    assert "grace" in machine.tell(GPUHERD, "user", "list")
    assert machine.tell("find", "/var/lib/gpuherd", "!", "-user", "gpuherd") == ""
    machine.run("systemctl", "start", HUB)
    live_node(herd)


@pytest.mark.parametrize("unit", [HUB, AGENT])
def test_who_hangs_is_restarted_by_the_watchdog(herd: Herd, unit: str) -> None:
    before, times = main_pid(herd.machine, unit), restarts(herd, unit)
    herd.machine.run("kill", "-STOP", str(before))
    herd.machine.until(lambda: restarts(herd, unit) > times, "the watchdog restarts it")
    herd.machine.until(lambda: main_pid(herd.machine, unit) not in (0, before), "another process serves")
    said = herd.machine.journal(unit)
    assert "Watchdog timeout" in said
    assert "Fatal Python error: Aborted" in said  # and where it hung
    live_node(herd)


@pytest.mark.parametrize("unit", [HUB, AGENT])
def test_who_is_killed_is_back(herd: Herd, unit: str) -> None:
    before = main_pid(herd.machine, unit)
    herd.machine.run("kill", "-KILL", str(before))
    herd.machine.until(lambda: main_pid(herd.machine, unit) not in (0, before), "it is back")
    live_node(herd)


def test_an_edited_configuration_is_left_and_told(herd: Herd) -> None:
    config = "/etc/gpuherd/gpuherd.toml"
    text = herd.machine.read(config)
    herd.machine.write(config, text + "# mine\n")
    told = herd.machine.run(GPUHERD, "install", "hub", "--listen", "0.0.0.0:1", check=False)
    assert told.returncode != 0
    assert 'has been edited and is not changed; set in it: [hub] listen = "0.0.0.0:1"' in told.stderr
    assert herd.machine.read(config) == text + "# mine\n"
    herd.machine.write(config, text)
    # The hub that runs is older than its configuration: it has not read what someone wrote.
    assert herd.install("hub", "--check")["changed"] == [f"{HUB}: started"]


def test_a_service_that_cannot_start_says_why(herd: Herd) -> None:
    config = "/etc/gpuherd/gpuherd.toml"
    text = herd.machine.read(config)
    herd.machine.write(config, text + '[history]\nenabled = "perhaps"\n')
    herd.machine.run("systemctl", "stop", HUB)
    told = herd.machine.run(GPUHERD, "install", "hub", check=False)
    herd.machine.write(config, text)
    assert told.returncode == 1
    assert "history.enabled" in told.stderr
    assert herd.install("hub")["changed"] == [f"{HUB}: started"]


def test_services_are_there_after_a_boot(herd: Herd) -> None:
    herd.machine.reboot()
    live_node(herd)
    assert is_page_there(herd.machine)


def test_removing_leaves_the_data(herd: Herd) -> None:
    credential = herd.machine.read("/var/lib/gpuherd-agent/credential")
    for part, unit in (("agent", AGENT), ("hub", HUB)):
        checked = herd.install("remove", part, "--check")
        removed = herd.install("remove", part)
        assert removed == checked
        assert f"{unit}: stopped" in removed["changed"]
        assert main_pid(herd.machine, unit) == 0
        assert herd.install("remove", part)["changed"] == []
    assert fleet(herd.machine) == {"nodes": []}
    assert "gpuherd" not in herd.machine.tell(
        "systemctl", "list-unit-files", "--no-legend", "--state=enabled"
    )
    herd.install("hub", *herd.hub_options)
    herd.install("agent", *herd.agent_options)  # its token is spent: the credential that was kept is good
    live_node(herd)
    assert herd.machine.read("/var/lib/gpuherd-agent/credential") == credential


def test_a_token_that_is_not_good_is_told_and_a_good_one_mends_it(herd: Herd) -> None:
    herd.machine.run("systemctl", "stop", AGENT)
    herd.machine.run("rm", "/var/lib/gpuherd-agent/credential")
    told = herd.machine.run(GPUHERD, "install", "agent", *herd.agent_options, check=False)
    assert told.returncode == 1
    assert f"{AGENT} did not start: http" in told.stderr
    assert "refused the join token" in told.stderr
    herd.machine.run(GPUHERD, "hub", "node", "remove", "gpu01")
    herd.machine.write(TOKEN, herd.machine.tell(GPUHERD, "token", "create"))
    assert "/etc/gpuherd/join-token" in herd.install("agent", *herd.agent_options)["changed"]
    assert herd.machine.run("test", "-e", "/etc/gpuherd/join-token", check=False).returncode == 1


def test_not_root_and_no_systemd_are_told(herd: Herd) -> None:
    told = herd.machine.run("runuser", "-u", "ada", "--", GPUHERD, "install", "hub", check=False)
    assert (told.returncode, told.stderr) == (
        1,
        "gpuherd: only root can install services; run this with sudo\n",
    )
    hidden = ("unshare", "--mount", "sh", "-c", f"mount -t tmpfs none /run/systemd && {GPUHERD} install hub")
    told = herd.machine.run(*hidden, check=False)
    assert told.returncode == 1
    assert told.stderr.startswith("gpuherd: systemd does not run on this machine: ")
