"""What makes a service of this machine: configuration, user, unit, its place in the boot; and taking it away again."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from importlib import resources
from pathlib import Path
from typing import Literal

from msgspec import Struct, structs

from gpuherd.agent.address import HubAddress
from gpuherd.agent.enrol import enrolled_at
from gpuherd.agent.settings import AgentSettings
from gpuherd.model.errors import Misconfigured
from gpuherd.wiring.config import read_config
from gpuherd.wiring.installing.age import installed_files, is_changed_since
from gpuherd.wiring.installing.asking import is_refused
from gpuherd.wiring.installing.config_file import CONFIG_PATH, Choices, config_with
from gpuherd.wiring.installing.executable import check_reachable, own_executable
from gpuherd.wiring.installing.files import Changes, TargetFiles
from gpuherd.wiring.installing.services import OWN_UNITS, PACKAGED_UNITS, Services, systemd_version

__all__ = ["Installation", "Outcome", "Part", "unit_text"]

Part = Literal["hub", "agent"]
JOIN_TOKEN_PATH = "/etc/gpuherd/join-token"  # noqa: S105 - a file's name
CREDENTIAL_PATHS = ("/var/lib/gpuherd-agent/credential", "/var/lib/private/gpuherd-agent/credential")
SYSUSERS_PATH = "/etc/sysusers.d/gpuherd.conf"
TMPFILES_PATH = "/etc/tmpfiles.d/gpuherd.conf"
LOCAL_KEY_PATH = "/var/lib/gpuherd/local.key"
"""Made by a hub at its first start."""
DATA_PATHS: dict[Part, tuple[str, ...]] = {
    "hub": ("/var/lib/gpuherd",),
    # With DynamicUser= the first is a link to the second.
    "agent": ("/var/lib/gpuherd-agent", "/var/lib/private/gpuherd-agent"),
}
LISTEN_SECRET_PATH = "/etc/gpuherd/listen-secret"  # noqa: S105 - a file's name
NODE_PASSWORD_PATH = "/etc/gpuherd/node-password"  # noqa: S105 - a file's name
CURRENT_PATHS: dict[Part, str] = {
    "hub": "/run/gpuherd-install/hub-config",
    "agent": "/run/gpuherd-install/agent-config",
}
"""Which writing of the configuration is nothing to a service that runs: one for the other service alone."""
_PARTS: tuple[Part, ...] = ("hub", "agent")
_MARK = "# Change it with `systemctl edit gpuherd-"
_BACKOFF_SINCE_VERSION = 254
_BACKOFF = "RestartSteps=8\nRestartMaxDelaySec=120"


class Outcome(Struct, frozen=True, kw_only=True):
    """What `gpuherd install` did, or with --check would do."""

    changed: list[str]
    unchanged: list[str]
    next: list[str]
    """What is left to a person, one sentence each."""


def unit_text(part: Part, executable: str, version: int | None = None) -> str:
    """Give a service's unit; ``version`` is that of the systemd that will read it, unknown: one that is old."""
    template = resources.files("gpuherd.wiring.installing").joinpath(f"units/gpuherd-{part}.service")
    has_backoff = version is not None and version >= _BACKOFF_SINCE_VERSION
    text = template.read_text(encoding="utf-8").replace("@GPUHERD@", executable)
    return text.replace("@BACKOFF@\n", f"{_BACKOFF}\n" if has_backoff else "")


class Installation:
    """Installs and removes services on this machine, or writes their files below ``root`` for another."""

    def __init__(
        self,
        root: Path = Path("/"),
        *,
        is_only_check: bool = False,
        may_start: bool = True,
        executable: str | None = None,
        services: Services | None = None,
        is_here: bool | None = None,
        is_refused: Callable[[AgentSettings, Path], bool] = is_refused,
    ) -> None:
        """``is_here`` tells whether ``root`` is the machine that runs; unless given, if it is ``/``.

        ``is_refused`` asks the hub about the credential in a file.
        """
        self._is_refused = is_refused
        self.is_here = root == Path("/") if is_here is None else is_here
        self._is_live = self.is_here and not is_only_check
        self._may_start = may_start
        self._is_only_check = is_only_check
        self._executable = executable or own_executable()
        self._services = services or Services()
        self._changes = Changes()
        self.files = TargetFiles(root, self._changes, is_only_check=is_only_check)

    @property
    def config_file(self) -> Path:
        """Where the configuration is."""
        return self.files.at(CONFIG_PATH)

    def hub(
        self, choices: dict[str, str], config_text: str | None = None, *, is_config_secret: bool = False
    ) -> Outcome:
        """Install the hub; ``config_text`` is a whole configuration to begin with, which may be for the hub alone."""
        self._check()
        mode = 0o640 if is_config_secret and not self.config_file.exists() else None
        is_configured = self._configure({"hub": choices}, config_text, mode)
        users = resources.files("gpuherd.wiring.installing").joinpath("units/gpuherd.sysusers")
        if not self._is_packaged("hub"):
            self.files.put(SYSUSERS_PATH, users.read_text(encoding="utf-8"))
            if self._is_live:
                self._services.make_user(SYSUSERS_PATH)
        if mode is not None and self._is_live:
            shutil.chown(self.config_file, group="gpuherd")
        is_new = not self.files.at(LOCAL_KEY_PATH).exists()
        self._run("hub", self._enable("hub"), is_configured=is_configured)
        if not is_new:
            return self._outcome()
        return self._outcome(
            "become the first admin: open the link that this prints: gpuherd hub setup-link",
            "add a node: gpuherd token create here, then gpuherd install agent there",
        )

    def agent(self, choices: dict[str, str], join_token: str | None = None) -> Outcome:
        """Install the agent. The token is kept for the first start only, readable by root only."""
        self._check()
        settings = self._agent_settings(choices)
        other_hub = self._other_hub(settings.hub_url)
        if other_hub is not None and join_token is None:
            raise Misconfigured(
                f"this node is enrolled at {other_hub}: to enrol it at the other hub, give that hub's join "
                "token with --join-token-file; if it is the same hub at another address, delete "
                f"{self.files.at(CREDENTIAL_PATHS[0])}.hub"
            )
        is_enrolled = self._is_enrolled() and other_hub is None
        is_forgotten = is_enrolled and join_token is not None and self._is_forgotten(settings)
        is_enrolled &= not is_forgotten
        if not is_enrolled and join_token is None:
            self._check_token()
        is_configured = self._configure({"agent": choices}, None)
        if other_hub is not None or is_forgotten:
            self._leave_hub()
        if not is_enrolled and join_token is not None:
            is_configured |= self.files.put(JOIN_TOKEN_PATH, f"{join_token}\n", mode=0o600)
        self._make_lock_folder()
        self._run("agent", self._enable("agent"), is_configured=is_configured)
        then = "check it with: systemctl status gpuherd-agent; if the node is not on the page: gpuherd doctor"
        if not self._is_live:
            return self._outcome(then)
        if self._is_enrolled():
            self.files.at(JOIN_TOKEN_PATH).unlink(missing_ok=True)
        if (
            self._may_start
            and not self._listens()
            and "cannot be reached" in self._services.status(_unit("agent"))
        ):
            words = self._services.last_words(_unit("agent"))
            then = (
                "the agent cannot reach the hub and keeps trying: "
                f"{words or 'find out why with gpuherd doctor'}"
            )
        return self._outcome(then)

    def remove(self, part: Part) -> Outcome:
        """Stop a service and take its unit away; configuration and data stay."""
        unit = _unit(part)
        if self.is_here and self._may_start:
            self._services.check()
            if self._services.is_active(unit):
                if not self._is_only_check:
                    self._services.stop(unit)
                self._changes.note(f"{unit}: stopped", is_change=True)
        paths = [_boot_link(unit), f"{OWN_UNITS}/{unit}"]
        if part == "hub":
            paths.append(SYSUSERS_PATH)
        else:
            paths += [JOIN_TOKEN_PATH, TMPFILES_PATH]
        removed = [path for path in paths if self.files.remove(path)]
        if removed and self._is_live and self._may_start:
            self._services.reload()
        kept = [path for path in DATA_PATHS[part] if os.path.lexists(self.files.at(path))]
        other: Part = "agent" if part == "hub" else "hub"
        if not any(self.files.at(path).exists() for path in DATA_PATHS[other]):  # else it is the other's, too
            kept.insert(0, "/etc/gpuherd")
        if not kept:
            return self._outcome()
        return self._outcome(f"configuration and data are kept; to delete them too: rm -r {' '.join(kept)}")

    # --- parts --------------------------------------------------------------------------------------------------

    def _check(self) -> None:
        if self.is_here and self._may_start:
            self._services.check()
        if self.is_here:
            check_reachable()

    def _configure(self, choices: Choices, config_text: str | None, mode: int | None = None) -> bool:
        place = str(self.files.at(CONFIG_PATH))
        before = self.files.text(CONFIG_PATH)
        if config_text is not None:
            if before is not None and before != config_text and before != config_with({}, None, place):
                raise Misconfigured(
                    f"{place}: already exists and differs from the file given with --config, so it is not "
                    "changed: move it aside, or edit it yourself and leave out --config"
                )
            before = config_text
        text = config_with(choices, before, place)
        others = [] if config_text is not None else [part for part in _PARTS if part not in choices]
        current = [part for part in others if self._is_live and not self._is_behind(part)]
        is_changed = self.files.put(CONFIG_PATH, text, mode=mode or self._mode(CONFIG_PATH))
        if is_changed:
            for part in current:
                self._note_current(part)
        return is_changed

    def _note_current(self, part: Part) -> None:
        """Note that a service needs no restart for the configuration as it was written now."""
        place = self.files.at(CURRENT_PATHS[part])
        place.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
        place.write_text(f"{self.config_file.stat().st_mtime_ns}\n")

    def _is_behind(self, part: Part) -> bool:
        """Tell whether a service runs as it was before its configuration, its unit or gpuherd itself was changed."""
        started_at = self._services.started_at(_unit(part))
        if started_at is None:
            return False
        files = [self.files.at(f"{folder}/{_unit(part)}") for folder in (OWN_UNITS, *PACKAGED_UNITS)]
        files += [*installed_files(), *self._services.drop_ins(_unit(part))]
        if part == "agent":
            secrets = (JOIN_TOKEN_PATH, LISTEN_SECRET_PATH, NODE_PASSWORD_PATH)
            files += [self.files.at(path) for path in secrets]
        noted = self.files.text(CURRENT_PATHS[part])
        if self.config_file.exists() and noted != f"{self.config_file.stat().st_mtime_ns}\n":
            files.append(self.config_file)
        return is_changed_since(started_at, files)

    def _mode(self, path: str) -> int:
        """Give the mode a file has, which its owner may have chosen; else that everyone may read it."""
        place = self.files.at(path)
        return place.stat().st_mode & 0o777 if place.exists() else 0o644

    def _is_enrolled(self) -> bool:
        return any(self.files.at(path).exists() for path in CREDENTIAL_PATHS)

    def _other_hub(self, hub_url: str | None) -> str | None:
        """Give the hub at which this node is enrolled, if that is another than the one it shall report to."""
        if hub_url is None or not self._is_enrolled():
            return None
        known_to = next(filter(None, (enrolled_at(self.files.at(path)) for path in CREDENTIAL_PATHS)), None)
        if known_to is None:  # enrolled before that was written down: what it has reported to until now
            before = read_config(self.files.text(CONFIG_PATH) or "", CONFIG_PATH).agent.hub_url
            known_to = None if before is None else HubAddress.parse(before).url
        return known_to if known_to is not None and known_to != HubAddress.parse(hub_url).url else None

    def _agent_settings(self, choices: dict[str, str]) -> AgentSettings:
        """Give what the agent will go by: the configuration, with what is chosen now."""
        settings = read_config(self.files.text(CONFIG_PATH) or "", CONFIG_PATH).agent
        return structs.replace(settings, hub_url=choices.get("hub_url", settings.hub_url))

    def _is_forgotten(self, settings: AgentSettings) -> bool:
        """Tell whether the hub does not know the credential any more: then a new token is to be used, not left over."""
        if not self.is_here:
            return False
        file = next(place for path in CREDENTIAL_PATHS if (place := self.files.at(path)).exists())
        return self._is_refused(settings, file)

    def _leave_hub(self) -> None:
        """Forget the credential of the hub that this node reported to; what it has kept for it stays."""
        if self._is_live and self._may_start:
            self._services.stop(_unit("agent"))
        for path in CREDENTIAL_PATHS:
            self.files.remove(path)
            self.files.remove(f"{path}.hub")

    def _make_lock_folder(self) -> None:
        """Let root own the folder of locks from every boot on, before a user can make it."""
        if self._is_packaged("agent"):
            return
        folders = resources.files("gpuherd.wiring.installing").joinpath("units/gpuherd.tmpfiles")
        self.files.put(TMPFILES_PATH, folders.read_text(encoding="utf-8"))
        if self._is_live:
            self._services.make_folders(TMPFILES_PATH)

    def _check_token(self) -> None:
        """See that a node which is not enrolled can be, or need not; ``Misconfigured`` says how to get a token."""
        if self.files.text(JOIN_TOKEN_PATH) is None and not self._listens():
            raise Misconfigured(
                "this node is not enrolled yet: create a join token on the hub with `gpuherd token "
                "create`, save it in a file, and give that file with --join-token-file"
            )

    def _listens(self) -> bool:
        return read_config(self.files.text(CONFIG_PATH) or "", CONFIG_PATH).agent.listen is not None

    def _is_packaged(self, part: Part) -> bool:
        return self._packaged_unit(part) is not None

    def _packaged_unit(self, part: Part) -> str | None:
        """Find the unit that a package of the distribution brought, if that is the gpuherd which runs now."""
        if not self._executable.startswith("/usr/bin/"):
            return None
        paths = (f"{folder}/{_unit(part)}" for folder in PACKAGED_UNITS)
        return next((path for path in paths if self.files.text(path) is not None), None)

    def _enable(self, part: Part) -> bool:
        """Write the unit and make it part of the boot; tells whether it is another than systemd has read before."""
        unit = _unit(part)
        packaged = self._packaged_unit(part)
        is_changed = False
        if packaged is None:
            version = systemd_version() if self.is_here else None
            is_changed = self.files.put(f"{OWN_UNITS}/{unit}", unit_text(part, self._executable, version))
        else:
            self._changes.note(packaged, is_change=False)
            # One that we wrote before the package came would go on hiding the package's.
            if _MARK in (self.files.text(f"{OWN_UNITS}/{unit}") or ""):
                is_changed = self.files.remove(f"{OWN_UNITS}/{unit}")
        is_linked = self.files.link(_boot_link(unit), packaged or f"{OWN_UNITS}/{unit}")
        if self.is_here and self._may_start:
            is_unread = self._services.needs_reload(unit)  # also if a run before this one got no further
            if (is_changed or is_linked or is_unread) and not self._is_only_check:
                self._services.reload()
            is_changed |= is_unread
        return is_changed

    def _run(self, part: Part, is_unit_changed: bool, *, is_configured: bool) -> None:
        unit = _unit(part)
        if not (self.is_here and self._may_start):
            return
        is_due = (
            is_unit_changed or is_configured or not self._services.is_active(unit) or self._is_behind(part)
        )
        if is_due and not self._is_only_check:
            self._services.restart(unit)
        self._changes.note(f"{unit}: started", is_change=is_due)

    def _outcome(self, *then: str) -> Outcome:
        changes = self._changes
        return Outcome(changed=changes.changed, unchanged=changes.unchanged, next=list(then))


def _unit(part: Part) -> str:
    return f"gpuherd-{part}.service"


def _boot_link(unit: str) -> str:
    return f"{OWN_UNITS}/multi-user.target.wants/{unit}"
