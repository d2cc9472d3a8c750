"""What users, nodes and devices of the past are called by one viewer: as the live view calls them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cached_property

from gpuherd.api.errors import HttpError
from gpuherd.bookings.herd import Herd
from gpuherd.fleet.programs import program_name
from gpuherd.fleet.pseudonyms import MARK
from gpuherd.model.bookings import DeviceRef
from gpuherd.model.people import Account, PrivacyClass, Viewer

__all__ = ["Groups", "PastFace", "groups_by_user"]

Groups = Mapping[str, tuple[str, ...]]


def groups_by_user(accounts: Iterable[Account]) -> dict[str, tuple[str, ...]]:
    """Give the groups of everyone who has any, by their names on the nodes."""
    found: dict[str, set[str]] = {}
    for account in accounts:
        for name in account.linux_names:
            found.setdefault(name, set()).update(account.groups)
    return {name: tuple(sorted(groups)) for name, groups in found.items() if groups}


class PastFace:
    """The past in the eyes of one viewer, made anew for every question; may be handed to another thread.

    People are known by two kinds of names: raw, as nodes have reported them, which is how use is kept, and shown, which
    is all that ever leaves the hub.
    """

    def __init__(
        self,
        viewer: Viewer,
        herd: Herd,
        *,
        alias: Callable[[str], str],
        pseudonym: Callable[[str], str],
        groups: Groups,
        shows_command_lines: bool = False,
    ) -> None:
        """``alias`` gives whom a user of the nodes is known as; ``pseudonym``, what the public calls such a one."""
        if viewer.privacy is None or viewer.privacy == "counts":
            raise HttpError(403, "forbidden", "you can only see totals")
        self.privacy: PrivacyClass = viewer.privacy
        self.is_public = viewer.privacy not in ("member", "admin")
        self.has_names = viewer.privacy in ("names", "member", "admin")
        self._own = frozenset(() if viewer.account is None else viewer.account.linux_names)
        self._herd = herd
        self._alias = alias
        self._pseudonym = pseudonym
        self._groups = groups
        self._reads_all = viewer.privacy == "admin" or shows_command_lines

    @property
    def reads_commands_of_others(self) -> bool:
        """Whether the viewer is shown whole command lines that are not its own."""
        return self._reads_all and not self.is_public

    # -- people ------------------------------------------------------------------------------------------------

    def person(self, raw: str | None) -> str | None:
        """Give who a user of a node is, before it is shown to anyone."""
        return None if raw is None else self._alias(raw)

    def user(self, raw: str | None) -> str | None:
        """Give what the viewer calls a user of a node. Names that were made pseudonyms for good stay what they are."""
        if raw is None:
            return None
        person = self._alias(raw)
        return person if self.has_names or person.startswith(MARK) else self._pseudonym(person)

    def users(self, raw: str | None) -> tuple[str | None, ...]:
        """Give it as the one key of a table."""
        return (self.user(raw),)

    def groups(self, raw: str | None) -> tuple[str | None, ...]:
        """Give the groups of a user of a node; who has none is in the group without a name."""
        if raw is None:
            return (None,)
        return self._groups.get(raw) or self._groups.get(self._alias(raw)) or (None,)

    def check_names(self, what: str) -> None:
        """Raise ``HttpError`` 401 if the viewer sees no more of people than the public."""
        if self.is_public:
            raise HttpError(401, "login_needed", f"log in first: {what} are not shown in public")

    def command(self, raw: str | None, command: str | None) -> str | None:
        """Give as much of a command line as the viewer may read."""
        if command is None or self.is_public:
            return None
        is_own = raw is not None and (raw in self._own or self._alias(raw) in self._own)
        return command if self._reads_all or is_own else program_name(command)

    @cached_property
    def _names(self) -> dict[str, str]:
        # Not before it is needed, and so in the thread that needs it.
        return {device.ref.node_id: device.node_name for device in self._herd.devices.values()}

    # -- things ------------------------------------------------------------------------------------------------

    def node(self, node_id: str) -> str:
        """Give a node's shown name; one that is gone keeps its id."""
        return self._names.get(node_id, node_id)

    def has_node(self, node_id: str) -> bool:
        """Whether a node with devices is in the herd now."""
        return node_id in self._names

    def has_device(self, node_id: str, uuid: str) -> bool:
        """Whether a device is in the herd now."""
        return DeviceRef(node_id, uuid) in self._herd.devices

    def nodes_with(self, uuid: str) -> list[tuple[str, str]]:
        """Give the devices of the herd that have this UUID, by node and UUID: nodes may claim each other's."""
        return [(ref.node_id, ref.uuid) for ref in self._herd.devices if ref.uuid == uuid]

    def device_named(self, word: str) -> DeviceRef | None:
        """Give the device of the herd that people call so, such as ``gpu07/3``."""
        return self._herd.named(word)

    def device(self, node_id: str, uuid: str) -> str:
        """Name a device: ``gpu07/3``; one that is gone by its UUID."""
        return self._herd.word(DeviceRef(node_id, uuid))

    def device_type(self, node_id: str, uuid: str) -> str | None:
        """Give the short name of a device's type, if it is in the herd now."""
        device = self._herd.devices.get(DeviceRef(node_id, uuid))
        return None if device is None else device.short_name
