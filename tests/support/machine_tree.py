"""The Debian tree that test machines boot from: made once, kept under a name derived from what goes into it."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
from pathlib import Path

__all__ = ["TreeError", "machine_tree"]

SUITE = "bookworm"
PACKAGES = (
    "ca-certificates",
    "dbus",
    "iproute2",
    "nginx-light",
    "openssh-server",
    "procps",
    "python3",
    "python3-venv",
    "sudo",
    "systemd",
    "systemd-sysv",
)
# What a machine of minutes has no use for, and boots quicker without.
_MASKED_UNITS = (
    "apt-daily-upgrade.timer",
    "apt-daily.timer",
    "console-getty.service",
    "dpkg-db-backup.timer",
    "e2scrub_reap.service",
    "e2scrub_all.timer",
    "fstrim.timer",
    "systemd-logind.service",
    "systemd-networkd-wait-online.service",
    "systemd-update-utmp.service",
    "systemd-update-utmp-runlevel.service",
)
# sshd and nginx are there for those who start them: no port is open that a test did not ask for.
_DISABLED_UNITS = ("ssh.service", "nginx.service")
_FINISH = f"""\
set -e
ln -sf /dev/null "$1/etc/systemd/system/getty.target"
for unit in {" ".join(_MASKED_UNITS)}; do ln -sf /dev/null "$1/etc/systemd/system/$unit"; done
chroot "$1" systemctl disable -q {" ".join(_DISABLED_UNITS)}
chroot "$1" systemctl enable -q systemd-networkd.service
rm -f "$1"/etc/ssh/ssh_host_*_key* "$1/etc/hostname" "$1/etc/resolv.conf"
: >"$1/etc/machine-id"
"""
_FOLDER = Path(__file__).parents[2] / "build" / "machine"


class TreeError(Exception):
    """The tree could not be made; the message says why."""


def machine_tree(folder: Path = _FOLDER) -> Path:
    """Give the tree's path and make it if it is not there; several processes may ask at once. Raises TreeError."""
    recipe = "\0".join((SUITE, *PACKAGES, _FINISH))
    tree = folder / hashlib.sha256(recipe.encode()).hexdigest()[:16]
    if tree.is_dir():
        return tree
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not tree.is_dir():
            _make(tree)
    return tree


def _make(tree: Path) -> None:
    fresh = tree.with_name(f"{tree.name}.new")
    shutil.rmtree(fresh, ignore_errors=True)
    command = [
        "mmdebstrap",
        "--quiet",
        "--mode=root",
        "--variant=minbase",
        f"--include={','.join(PACKAGES)}",
        "--aptopt=Acquire::Languages none",
        "--aptopt=Acquire::Retries 3",
        "--dpkgopt=path-exclude=/usr/share/doc/*",
        "--dpkgopt=path-exclude=/usr/share/locale/*",
        "--dpkgopt=path-exclude=/usr/share/man/*",
        "--dpkgopt=force-unsafe-io",
        f"--customize-hook={_FINISH}",
        SUITE,
        str(fresh),
        _mirror(),
    ]
    made = subprocess.run(
        command, capture_output=True, text=True, errors="replace", stdin=subprocess.DEVNULL, check=False
    )
    if made.returncode != 0:
        shutil.rmtree(fresh, ignore_errors=True)
        raise TreeError(f"mmdebstrap failed with status {made.returncode}:\n{made.stderr[-3000:]}")
    fresh.chmod(0o755)
    os.rename(fresh, tree)  # noqa: PTH104 - a folder, whole or not at all


def _mirror() -> str:
    """Give the mirror this machine's own packages come from."""
    targets = subprocess.run(
        ["apt-get", "indextargets", "--format", "$(REPO_URI) $(RELEASE) $(ORIGIN)", "Identifier: Packages"],
        capture_output=True,
        text=True,
        check=False,
    )
    for line in targets.stdout.splitlines():
        uri, release, origin = line.split()[:3]
        if origin == "Debian" and release == SUITE:
            return uri
    raise TreeError(f"no Debian mirror with {SUITE} in the apt sources")
