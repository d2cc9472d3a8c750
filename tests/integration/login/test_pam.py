"""Logging in by PAM, with real services and real users of this machine."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest

from gpuherd.auth import child_check
from gpuherd.auth.pam import PamWay
from gpuherd.auth.way_settings import PamSettings
from gpuherd.model.errors import Failed, Misconfigured, Refused
from support.pam_service import UNIX_RULES, LocalUser, local_user, need_pam, pam_service
from support.running import eventually


@pytest.fixture(scope="module", autouse=True)
def pam_here() -> None:
    need_pam()


@pytest.fixture(scope="module")
def service() -> Iterator[str]:
    with pam_service() as name:
        yield name


@pytest.fixture
def user() -> Iterator[LocalUser]:
    with local_user() as made:
        yield made


@pytest.fixture
def way(service: str) -> PamWay:
    return PamWay(PamSettings(service=service))


def test_right_password_tells_all_that_the_system_knows(way: PamWay, user: LocalUser) -> None:
    vouched = way.check(user.name, user.password)

    assert vouched is not None
    assert (vouched.source, vouched.subject, vouched.name) == ("pam", user.name, user.name)
    assert vouched.display_name == "Test Person"
    assert vouched.groups == tuple(sorted({user.name, user.group}))
    assert vouched.linux_names == (user.name,)


def test_wrong_password_and_unknown_user_are_nobody(way: PamWay, user: LocalUser) -> None:
    assert way.check(user.name, user.password + "x") is None
    assert way.check(user.name + "x", user.password) is None


@pytest.mark.parametrize("password", ["", "\0", "x\0y", "\ud800"])
def test_passwords_that_pam_never_sees(way: PamWay, user: LocalUser, password: str) -> None:
    assert way.check(user.name, password) is None


@pytest.mark.parametrize("name", ["", " ", "a b", "../x", "x\0", "a\nb", "root; id", "-x", "x" * 200])
def test_names_that_pam_never_sees(way: PamWay, name: str) -> None:
    assert way.check(name, "password") is None


def test_locked_user_is_nobody(way: PamWay, user: LocalUser) -> None:
    user.change("--lock")

    assert way.check(user.name, user.password) is None


def test_expired_account_is_told_only_to_who_knows_the_password(way: PamWay, user: LocalUser) -> None:
    user.change("--expiredate", "1")

    with pytest.raises(Refused) as refused:
        way.check(user.name, user.password)
    assert refused.value.code == "account_expired"
    assert way.check(user.name, "wrong") is None


def test_expired_password_must_be_changed_first(way: PamWay, user: LocalUser) -> None:
    user.age("--lastday", "0")

    with pytest.raises(Refused) as refused:
        way.check(user.name, user.password)
    assert refused.value.code == "password_expired"


def test_account_without_a_password_lets_nobody_in(user: LocalUser) -> None:
    user.empty_password()
    with pam_service("auth required pam_unix.so nodelay nullok\naccount required pam_unix.so\n") as service:
        assert PamWay(PamSettings(service=service)).check(user.name, "anything") is None


def test_account_rules_are_heeded(user: LocalUser) -> None:
    with pam_service("auth required pam_unix.so nodelay\naccount required pam_deny.so\n") as service:
        way = PamWay(PamSettings(service=service))
        with pytest.raises(Refused) as refused:
            way.check(user.name, user.password)
        assert refused.value.code == "account_closed"
        assert way.check(user.name, "wrong") is None


def test_system_accounts_stay_out(user: LocalUser) -> None:
    with pam_service("auth required pam_permit.so\naccount required pam_permit.so\n") as service:
        way = PamWay(PamSettings(service=service))
        with pytest.raises(Refused) as refused:
            way.check("root", "anything")
        assert refused.value.code == "account_closed"
        assert way.check(user.name, "anything") is not None


def test_user_whom_only_pam_knows_has_no_linux_name() -> None:
    with pam_service("auth required pam_permit.so\naccount required pam_permit.so\n") as service:
        vouched = PamWay(PamSettings(service=service)).check("nobody-of-this-machine", "anything")

    assert vouched is not None
    assert (vouched.name, vouched.linux_names, vouched.groups) == ("nobody-of-this-machine", (), None)


def test_only_the_allowed_groups_enter(service: str, user: LocalUser) -> None:
    inside = PamWay(PamSettings(service=service, allowed_groups=("other", user.group)))
    outside = PamWay(PamSettings(service=service, allowed_groups=("other",)))

    assert inside.check(user.name, user.password) is not None
    with pytest.raises(Refused) as refused:
        outside.check(user.name, user.password)
    assert refused.value.code == "group_needed"
    assert outside.check(user.name, "wrong") is None


def test_hung_module_is_ended_at_the_deadline_with_all_it_started(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    script = tmp_path / "hang"
    script.write_text(f"#!/bin/sh\necho $$ >>{pids}\nexec sleep 600\n")
    script.chmod(0o755)
    with pam_service(f"auth required pam_exec.so {script}\naccount required pam_permit.so\n") as service:
        way = PamWay(PamSettings(service=service, deadline_seconds=2))
        with ThreadPoolExecutor(2) as pool:
            tries = [pool.submit(way.check, "someone", "password") for _ in range(2)]
            for attempt in tries:
                with pytest.raises(Failed, match="did not respond within 2 s"):
                    attempt.result()

    begun = [int(line) for line in pids.read_text().split()]
    assert begun
    eventually(lambda: [pid for pid in begun if _is_running(pid)], lambda running: not running)


def _is_running(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def test_checks_that_cannot_be_ended_are_bounded(way: PamWay, monkeypatch: pytest.MonkeyPatch) -> None:
    class Unkillable:
        def poll(self) -> None:
            return None

    monkeypatch.setattr(way._checks, "_stuck", [Unkillable()] * child_check.MAX_STUCK)

    with pytest.raises(Failed, match="PAM hangs"):
        way.check("someone", "password")


def test_module_that_cannot_answer_is_a_failure_not_a_wrong_password(tmp_path: Path) -> None:
    missing = tmp_path / "pam_missing.so"
    with (
        pam_service(f"auth required {missing}\naccount required pam_permit.so\n") as service,
        pytest.raises(Failed, match="PAM cannot check passwords now"),
    ):
        PamWay(PamSettings(service=service)).check("someone", "password")


def test_password_is_in_no_argument_list_and_the_hubs_environment_in_no_module(
    tmp_path: Path, user: LocalUser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LD_PRELOAD_FOR_HUB_ONLY", "mark-of-the-hub")
    seen = tmp_path / "seen"
    script = tmp_path / "look"
    script.write_text(f"#!/bin/sh\ncat /proc/$PPID/cmdline /proc/$PPID/environ >{seen}\nexit 0\n")
    script.chmod(0o755)
    with pam_service(f"auth required pam_exec.so {script}\n{UNIX_RULES}") as service:
        assert PamWay(PamSettings(service=service)).check(user.name, user.password) is not None

    assert b"pam_child" in seen.read_bytes()
    assert user.password.encode() not in seen.read_bytes()
    assert b"mark-of-the-hub" not in seen.read_bytes()


def test_service_without_a_file_stops_the_start() -> None:
    with pytest.raises(Misconfigured, match=r"login\.pam\.service: there is no /etc/pam\.d/gpuherd-nowhere"):
        PamWay(PamSettings(service="gpuherd-nowhere"))


def test_checks_leave_nothing_open(way: PamWay, user: LocalUser) -> None:
    way.check(user.name, "wrong")
    before = _open_files()
    for _ in range(3):
        way.check(user.name, "wrong")

    assert _open_files() <= before


def _open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))
