"""What is remembered of one person: given to them, or forgotten."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Protocol, TypeVar

from gpuherd.api.past.figures import Prices
from gpuherd.api.threads import BoundedThreads, TooMuchWork
from gpuherd.fleet.names import Names
from gpuherd.history.usage.asking import Stay
from gpuherd.model.errors import Failed
from gpuherd.model.history import UsageSession
from gpuherd.model.people import Account

__all__ = ["PersonalPast", "UseOfPeople"]

T = TypeVar("T")

MAX_WAITING = 16
DEADLINE_SECONDS = 600.0
"""Files of years may have to be written anew."""
EXPORT_SECONDS = 120.0
"""Files of years are to be read."""


class UseOfPeople(Protocol):
    """Use by the users of nodes. Both block, and raise ``Failed`` if files cannot be read or written."""

    def export(self, users: Collection[str], *, deadline: float) -> tuple[Stay, ...]:
        """Give all stays of these users, not some of them; ``Failed`` if that takes more than these seconds."""

    def erase(self, users: Collection[str]) -> None:
        """Forget whose these users' stays were; may be called again."""


class PersonalPast:
    """Knows which users of the nodes a person is. Used on the event loop."""

    def __init__(self, use: UseOfPeople, names: Names, prices: Prices) -> None:
        self._use = use
        self._names = names
        self._prices = prices
        self._threads = BoundedThreads(
            "personal", threads=1, max_waiting=MAX_WAITING, deadline_seconds=DEADLINE_SECONDS
        )

    async def export(self, account: Account) -> list[UsageSession]:
        """Give all of a person's stays, with command lines as long as they are kept; ``Failed`` if that cannot be."""
        return await self._run(self._export, account)

    async def erase(self, account: Account) -> None:
        """Forget whose the person's stays were; ``Failed`` if some could not be: then it is to be done again."""
        await self._run(self._erase, account)

    def close(self) -> None:
        """Begin nothing any more."""
        self._threads.close()

    async def _run(self, verb: Callable[[Account], T], account: Account) -> T:
        try:
            return await self._threads.run(verb, account)
        except (TooMuchWork, TimeoutError):
            raise Failed("the history of people cannot be searched right now; try again later") from None

    def _users(self, account: Account) -> frozenset[str]:
        return self._names.with_aliases(account.linux_names)

    def _export(self, account: Account) -> list[UsageSession]:
        stays = self._use.export(self._users(account), deadline=EXPORT_SECONDS)
        return [self._told(stay) for stay in stays]

    def _erase(self, account: Account) -> None:
        self._use.erase(self._users(account))

    def _told(self, stay: Stay) -> UsageSession:
        key = stay.key
        return UsageSession(
            id=stay.id,
            node_id=key.node_id,
            uuid=key.uuid,
            node=key.node_id,
            type=key.type,
            user=key.user,
            container=key.container,
            job=key.job,
            command=stay.command,
            started_at=key.opened_at,
            ended_at=None if stay.is_open else stay.last,
            last_seen_at=stay.last,
            figures=self._prices.of(stay.sums, {key.type: stay.sums}),
        )
