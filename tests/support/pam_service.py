"""A PAM service and a user of the test's own, made and removed by root."""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

__all__ = ["UNIX_RULES", "LocalUser", "local_user", "need_pam", "pam_service"]

UNIX_RULES = "auth required pam_unix.so nodelay\naccount required pam_unix.so\n"
_FOLDER = Path("/etc/pam.d")


def need_pam() -> None:
    """Skip where PAM cannot be given users and services, saying why."""
    pytest.importorskip("pam", reason="python-pam is not installed: pip install 'gpuherd[pam]'")
    if os.geteuid() != 0:
        pytest.skip("not root: no user and no PAM service can be made")
    if not _FOLDER.is_dir() or shutil.which("useradd") is None:
        pytest.skip("no PAM or no useradd on this machine")


@contextmanager
def pam_service(rules: str = UNIX_RULES) -> Iterator[str]:
    """Make a service of these rules and give its name."""
    name = f"gpuherd-test-{secrets.token_hex(4)}"
    file = _FOLDER / name
    file.write_text(rules)
    try:
        yield name
    finally:
        file.unlink()


class LocalUser:
    """A user of this machine with a password and a group of its own."""

    def __init__(self, name: str, password: str, group: str) -> None:
        self.name = name
        self.password = password
        self.group = group

    def change(self, *options: str) -> None:
        """Run usermod, such as ``--lock`` or ``--expiredate 1``."""
        subprocess.run(["usermod", *options, self.name], check=True, capture_output=True)

    def age(self, *options: str) -> None:
        """Run chage, such as ``--lastday 0``."""
        subprocess.run(["chage", *options, self.name], check=True, capture_output=True)

    def empty_password(self) -> None:
        """Let the user in without any password."""
        subprocess.run(["passwd", "--delete", self.name], check=True, capture_output=True)


@contextmanager
def local_user() -> Iterator[LocalUser]:
    """Make a user who is also in a further group, and remove both."""
    mark = secrets.token_hex(3)
    user = LocalUser(f"ghtest{mark}", secrets.token_urlsafe(12), f"ghgroup{mark}")
    subprocess.run(["groupadd", user.group], check=True, capture_output=True)
    try:
        subprocess.run(
            [
                "useradd",
                "--no-create-home",
                "--comment",
                "Test Person,Room 1",
                "--groups",
                user.group,
                user.name,
            ],
            check=True,
            capture_output=True,
        )
        try:
            line = f"{user.name}:{user.password}\n"
            subprocess.run(["chpasswd"], input=line.encode(), check=True, capture_output=True)
            yield user
        finally:
            subprocess.run(["userdel", user.name], check=True, capture_output=True)
    finally:
        subprocess.run(["groupdel", user.group], check=True, capture_output=True)
