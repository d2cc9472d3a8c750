"""The running systemd: asked what is so, told what shall be."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

from gpuherd.model.errors import Failed, Unavailable
from gpuherd.model.text import clean

__all__ = ["OWN_UNITS", "PACKAGED_UNITS", "Services", "complaint", "systemd_version"]

OWN_UNITS = "/etc/systemd/system"
PACKAGED_UNITS = ("/usr/lib/systemd/system", "/lib/systemd/system")
"""Where units are that came with a package of the distribution."""

_START = re.compile(r"Starting (?:gpuherd-|gpuherd )")
_LAST_WORDS = re.compile(r"gpuherd: (.*)")
_COMPLAINT = re.compile(r"\d{4}-\S+ \S+ (?:WARNING|ERROR|CRITICAL) (.*)")
_CHATTER = re.compile(r"(?:Started |Stopping |Stopped |Failed to start |\S+\.service: (?!Failed (?:at|to) ))")
"""What systemd tells of every service that ends."""
START_SECONDS = 180.0
"""Longer than the units' own limit, unless a start asks systemd for more time."""


def _ask(*command: str) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(
            command,
            capture_output=True,
            text=True,
            errors="replace",
            stdin=subprocess.DEVNULL,
            timeout=START_SECONDS,
            check=False,
        )
    except OSError as error:
        raise Unavailable(
            f"{command[0]} cannot be run ({error.strerror}): this machine has no systemd; write the units "
            "for another machine with --root DIR, or start gpuherd from cron, see docs/deploy/systemd.md"
        ) from error
    except subprocess.TimeoutExpired as error:
        raise Failed(
            f"{' '.join(command)} did not finish within {START_SECONDS:g} s; the service may still be "
            "starting, check it with systemctl status"
        ) from error


def systemd_version() -> int | None:
    """Give systemd's version; None if it is not installed."""
    try:
        told = _ask("systemctl", "--version").stdout
    except (Unavailable, Failed):
        return None
    match = re.match(r"systemd (\d+)", told)
    return int(match[1]) if match else None


class Services:
    """Services of this machine."""

    def check(self) -> None:
        """Raise ``Unavailable`` unless systemd runs here."""
        if not Path("/run/systemd/system").is_dir():
            raise Unavailable(
                "systemd does not run on this machine: install the units with --no-start, or start "
                "gpuherd from cron, see docs/deploy/systemd.md"
            )

    def reload(self) -> None:
        """Let systemd read its units again."""
        self._told("systemctl", "daemon-reload")

    def make_user(self, sysusers_file: str) -> None:
        """Make the users that a file of sysusers.d names, if they are missing."""
        self._told("systemd-sysusers", sysusers_file)

    def make_folders(self, tmpfiles_file: str) -> None:
        """Make the folders that a file of tmpfiles.d names, as every boot does.

        That it cannot be done now stops nothing: what stands in the way, any user may have put there, and the next boot
        is without it.
        """
        with contextlib.suppress(Unavailable, Failed):
            _ask("systemd-tmpfiles", "--create", tmpfiles_file)

    def is_known(self, unit: str) -> bool:
        """Tell whether there is such a service."""
        return self._property(unit, "LoadState") == "loaded"

    def is_failing(self, unit: str) -> bool:
        """Tell whether a service was started and did not stay: it failed, or is about to be tried again."""
        return (
            self._property(unit, "ActiveState") == "failed"
            or self._property(unit, "SubState") == "auto-restart"
        )

    def status(self, unit: str) -> str:
        """Give the line with which a service says how it fares; blank if it says nothing."""
        return clean(self._property(unit, "StatusText"), 200)

    def last_words(self, unit: str) -> str:
        """Give what a service has said last against itself since its start; blank if nothing can be read."""
        _ask("journalctl", "--sync")  # what it wrote just before it ended may not be there yet
        log = _ask("journalctl", "-q", "--no-pager", "-o", "cat", "-n", "100", "-u", unit).stdout.splitlines()
        return clean(complaint(log), 400)

    def is_active(self, unit: str) -> bool:
        """Tell whether a service runs."""
        return _ask("systemctl", "is-active", "--quiet", unit).returncode == 0

    def started_at(self, unit: str) -> float | None:
        """Tell when the process of a service started, as time since the epoch; None if it does not run.

        Reckoned back from now: the clock may have been wrong at the start, and stood still for systemd's monotonic one
        while the machine slept.
        """
        pid = self._property(unit, "MainPID")
        try:
            # The name before it, in parentheses, may hold anything. The 22nd field is in ticks since the boot.
            fields = Path(f"/proc/{int(pid)}/stat").read_text(errors="replace").rpartition(")")[2].split()
            ticks = int(fields[19]) + 1  # rounded up: what was written just before the start is not newer
        except (OSError, ValueError, IndexError):
            return None
        return time.time() - (time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK"))

    def drop_ins(self, unit: str) -> list[Path]:
        """Give the files that add to a service's unit."""
        return [Path(path) for path in self._property(unit, "DropInPaths").split()]

    def needs_reload(self, unit: str) -> bool:
        """Tell whether a unit's files are others than those that systemd has read."""
        return self._property(unit, "NeedDaemonReload") == "yes"

    def restart(self, unit: str) -> None:
        """Start a service, anew if it runs; returns when it is ready. ``Failed`` tells its last words."""
        _ask("systemctl", "reset-failed", unit)
        done = _ask("systemctl", "restart", unit)
        if done.returncode != 0:
            said = self.last_words(unit) or "no error in its log"
            raise Failed(f"{unit} did not start: {said} (more: journalctl -u {unit})")

    def stop(self, unit: str) -> None:
        """Stop a service, and do not start it at the next boot."""
        self._told("systemctl", "stop", unit)

    @staticmethod
    def _property(unit: str, name: str) -> str:
        """Ask for a property of a unit; blank where there is no systemd, as with --no-start there need not be."""
        try:
            return _ask("systemctl", "show", f"--property={name}", "--value", unit).stdout.strip()
        except Unavailable:
            return ""

    @staticmethod
    def _told(*command: str) -> None:
        done = _ask(*command)
        if done.returncode != 0:
            raise Failed(
                f"{' '.join(command)}: {clean(done.stderr.strip(), 400) or 'failed without a message'}"
            )


def complaint(log: Sequence[str]) -> str:
    """Find in a service's log why its last start went wrong: its own words, or the last line that says anything."""
    starts = [number for number, line in enumerate(log) if _START.match(line)]
    since = log[starts[-1] + 1 :] if starts else log
    for words in (_LAST_WORDS, _COMPLAINT):
        for line in reversed(since):
            if found := words.match(line):
                return found[1]
    return next((line for line in reversed(since) if line.strip() and not _CHATTER.match(line)), "")
