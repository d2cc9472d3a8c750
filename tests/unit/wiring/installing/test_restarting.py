"""When `gpuherd install` starts a service anew: also for what was changed, but not started, before."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from gpuherd.agent.enrol import hub_file
from gpuherd.agent.settings import AgentSettings
from gpuherd.model.errors import Misconfigured
from gpuherd.wiring.installing import plan
from gpuherd.wiring.installing.age import is_changed_since
from gpuherd.wiring.installing.plan import Installation
from gpuherd.wiring.installing.services import Services

HUB, AGENT = "gpuherd-hub.service", "gpuherd-agent.service"
CONFIG = "etc/gpuherd/gpuherd.toml"
TO_HUB = {"hub_url": "http://127.0.0.1:8470"}


class FakeServices(Services):
    """A systemd that starts everything at once."""

    def __init__(self, probe: Path) -> None:
        self._probe = probe
        self.deeds: list[str] = []
        self.started: dict[str, float] = {}
        self.is_reload_due = False
        self.is_cut_off = False
        self.said = "reporting to http://127.0.0.1:8470"

    def check(self) -> None: ...

    def make_user(self, sysusers_file: str) -> None: ...

    def make_folders(self, tmpfiles_file: str) -> None: ...

    def reload(self) -> None:
        self.deeds.append("reload")
        self.is_reload_due = False

    def is_active(self, unit: str) -> bool:
        return unit in self.started

    def started_at(self, unit: str) -> float | None:
        return self.started.get(unit)

    def drop_ins(self, unit: str) -> list[Path]:
        return []

    def needs_reload(self, unit: str) -> bool:
        return self.is_reload_due

    def status(self, unit: str) -> str:
        return self.said

    def last_words(self, unit: str) -> str:
        return "the hub at http://127.0.0.1:8470 cannot be reached: no route"

    def restart(self, unit: str) -> None:
        if self.is_cut_off:
            raise KeyboardInterrupt
        self.deeds.append(f"restart {unit}")
        self.started[unit] = time.time()
        self._wait_for_file_times_after(self.started[unit])

    def _wait_for_file_times_after(self, moment: float) -> None:
        """Wait until what is written next is newer.

        The clock of file times moves only some hundred times a second, so that a file written after ``time.time()`` may
        seem to be older. Real services take longer than that to start.
        """
        self._probe.touch()
        while self._probe.stat().st_mtime <= moment:
            self._probe.touch()

    def stop(self, unit: str) -> None:
        self.deeds.append(f"stop {unit}")
        self.started.pop(unit, None)


class Machine:
    """A machine with this folder as its root; what it has was written a while ago."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.services = FakeServices(root.with_name("probe"))
        self.is_forgotten = False
        self.is_refused: Callable[[AgentSettings, Path], bool] = lambda settings, file: self.is_forgotten

    def install(self, *, is_only_check: bool = False, may_start: bool = True) -> Installation:
        return Installation(
            self.root,
            is_only_check=is_only_check,
            may_start=may_start,
            executable="/opt/gpuherd/bin/gpuherd",
            services=self.services,
            is_here=True,
            is_refused=self.is_refused,
        )

    def checked(self) -> list[str]:
        return self.install(is_only_check=True).hub({}).changed

    def deeds(self) -> list[str]:
        done, self.services.deeds = self.services.deeds, []
        return done


@pytest.fixture
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Stands for what an update of gpuherd makes anew."""
    made = tmp_path / "gpuherd-1.dist-info"
    made.mkdir()
    monkeypatch.setattr(plan, "installed_files", lambda: [made])
    return made


@pytest.fixture
def machine(tmp_path: Path, packages: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    """A hub that runs as it is installed."""
    monkeypatch.setattr(plan, "check_reachable", lambda: None)
    machine = Machine(tmp_path / "root")
    machine.root.mkdir()
    machine.install().hub({})
    assert machine.deeds() == ["reload", f"restart {HUB}"]
    assert machine.checked() == []
    return machine


def test_a_run_that_was_cut_off_is_finished_by_the_next(machine: Machine) -> None:
    machine.services.is_cut_off = True
    with pytest.raises(KeyboardInterrupt):
        machine.install().hub({"listen": "0.0.0.0:9000"})
    machine.services.is_cut_off = False
    assert machine.checked() == [f"{HUB}: started"]
    assert machine.deeds() == []
    assert machine.install().hub({"listen": "0.0.0.0:9000"}).changed == [f"{HUB}: started"]
    assert machine.deeds() == [f"restart {HUB}"]
    assert machine.install().hub({}).changed == []


def test_what_was_written_without_a_start_is_started_by_the_next_run(machine: Machine) -> None:
    assert machine.install(may_start=False).hub({"listen": "0.0.0.0:9001"}).changed == [f"/{CONFIG}"]
    assert machine.deeds() == []
    assert machine.install().hub({}).changed == [f"{HUB}: started"]


def test_an_update_is_started(machine: Machine, packages: Path) -> None:
    packages.touch()
    assert machine.checked() == [f"{HUB}: started"]
    machine.install().hub({})
    assert machine.deeds() == [f"restart {HUB}"]
    assert machine.checked() == []


def test_a_unit_that_systemd_has_not_read_is_read_and_started(machine: Machine) -> None:
    machine.services.is_reload_due = True
    assert machine.checked() == [f"{HUB}: started"]
    machine.install().hub({})
    assert machine.deeds() == ["reload", f"restart {HUB}"]


def test_a_unit_that_was_read_but_not_started_is_started(machine: Machine) -> None:
    (machine.root / "etc/systemd/system" / HUB).touch()
    machine.install().hub({})
    assert machine.deeds() == [f"restart {HUB}"]


def test_what_is_written_for_the_agent_does_not_restart_the_hub(machine: Machine) -> None:
    machine.install().agent(TO_HUB, "ghj_token")
    assert machine.deeds() == ["reload", f"restart {AGENT}"]
    assert machine.checked() == []
    (machine.root / CONFIG).touch()
    assert machine.checked() == [f"{HUB}: started"]


def test_what_the_hub_lacked_before_the_agent_came_is_still_due(machine: Machine) -> None:
    (machine.root / CONFIG).touch()
    machine.install().agent(TO_HUB, "ghj_token")
    assert machine.checked() == [f"{HUB}: started"]


def test_an_agent_that_waits_for_its_hub_is_given_a_new_token(machine: Machine) -> None:
    machine.install().agent(TO_HUB, "ghj_token")
    machine.deeds()
    assert f"{AGENT}: started" in machine.install().agent(TO_HUB, "ghj_other").changed
    assert machine.deeds() == [f"restart {AGENT}"]


def test_a_node_that_the_hub_has_forgotten_is_enrolled_by_a_new_token_and_no_other(machine: Machine) -> None:
    machine.install().agent(TO_HUB, "ghj_token")
    credential = machine.root / "var/lib/gpuherd-agent/credential"
    credential.parent.mkdir(parents=True)
    credential.write_text("ghn_old")
    assert machine.install().agent(TO_HUB, "ghj_other").changed == []
    machine.is_forgotten = True
    assert machine.install().agent(TO_HUB).changed == []
    assert (
        "/var/lib/gpuherd-agent/credential"
        in machine.install(is_only_check=True).agent(TO_HUB, "ghj_other").changed
    )
    assert credential.exists()
    machine.deeds()
    machine.install().agent(TO_HUB, "ghj_other")
    assert not credential.exists()
    assert (machine.root / "etc/gpuherd/join-token").read_text() == "ghj_other\n"
    assert machine.deeds() == [f"stop {AGENT}", f"restart {AGENT}"]


def test_a_hub_that_only_the_configuration_names_is_another_hub_too(machine: Machine) -> None:
    machine.install().agent(TO_HUB, "ghj_token")
    credential = machine.root / "var/lib/gpuherd-agent/credential"
    credential.parent.mkdir(parents=True)
    credential.write_text("ghn_old")
    hub_file(credential).write_text("https://gpus.example.org:443")

    def ask(settings: AgentSettings, file: Path) -> bool:
        raise AssertionError("a credential is shown to the hub that gave it only")

    machine.is_refused = ask
    with pytest.raises(Misconfigured, match=r"this node is enrolled at https://gpus\.example\.org"):
        machine.install().agent({})
    assert credential.exists()
    machine.install().agent({}, "ghj_other")
    assert not credential.exists()


def test_an_agent_that_does_not_reach_its_hub_says_why(machine: Machine) -> None:
    machine.services.said = (
        "http://127.0.0.1:8470 cannot be reached, the log says why; samples are spooled to disk"
    )
    (told,) = machine.install().agent(TO_HUB, "ghj_token").next
    assert told.endswith(machine.services.last_words(AGENT))


def test_a_hub_that_has_run_before_needs_no_first_steps(machine: Machine) -> None:
    assert any("setup-link" in told for told in machine.install().hub({}).next)
    key = machine.root / "var/lib/gpuherd/local.key"
    key.parent.mkdir(parents=True)
    key.touch()
    assert machine.install().hub({}).next == []


def test_what_to_delete_after_removing_is_not_what_the_other_service_needs(machine: Machine) -> None:
    kept = machine.root / "var/lib/private/gpuherd-agent"
    kept.mkdir(parents=True)
    (machine.root / "var/lib/gpuherd-agent").symlink_to("private/gpuherd-agent")
    (machine.root / "var/lib/gpuherd").mkdir()
    told = machine.install().remove("agent").next
    assert told == [
        (
            "configuration and data are kept; to delete them too: "
            "rm -r /var/lib/gpuherd-agent /var/lib/private/gpuherd-agent"
        )
    ]
    kept.rmdir()
    (machine.root / "var/lib/gpuherd-agent").unlink()
    told = machine.install().remove("hub").next
    assert told == [
        "configuration and data are kept; to delete them too: rm -r /etc/gpuherd /var/lib/gpuherd"
    ]


def test_a_check_tells_that_removing_stops_the_service(machine: Machine) -> None:
    checked = machine.install(is_only_check=True).remove("hub").changed
    assert checked[0] == f"{HUB}: stopped"
    assert machine.deeds() == []
    assert machine.services.is_active(HUB)
    assert machine.install().remove("hub").changed == checked
    assert machine.deeds() == [f"stop {HUB}", "reload"]


def test_a_time_to_come_is_no_reason_to_restart_for_ever(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    now = time.time()
    assert is_changed_since(now - 60, [file])
    assert not is_changed_since(now + 60, [file])
    os.utime(file, (now + 3600, now + 3600))
    assert not is_changed_since(now - 60, [file, tmp_path / "gone"])


def test_the_start_of_a_process_is_reckoned_back_from_now(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Services, "_property", staticmethod(lambda unit, name: str(os.getpid())))
    before = time.time()
    started_at = Services().started_at(HUB)
    assert started_at is not None
    assert before - 24 * 3600 < started_at < before
    monkeypatch.setattr(Services, "_property", staticmethod(lambda unit, name: "0"))
    assert Services().started_at(HUB) is None


def test_where_there_is_no_systemd_no_service_runs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert Services().started_at(HUB) is None
    assert not Services().needs_reload(HUB)
    assert Services().drop_ins(HUB) == []
