"""Hooks: each is told its events one after the other, on its own; none can hold up another, or anything else."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable
from random import Random
from typing import Protocol

import msgspec

from gpuherd.bookings.hook_commands import CommandHook
from gpuherd.bookings.hook_events import Event
from gpuherd.bookings.hook_ledger import Delivery, HookLedger
from gpuherd.bookings.hook_settings import HookEvent, HookSettings
from gpuherd.bookings.webhooks import WebHook
from gpuherd.model.errors import Failed

__all__ = ["Hook", "HookLine", "make_hook"]

log = logging.getLogger(__name__)

FIRST_PAUSE_SECONDS = 5.0
LONGEST_PAUSE_SECONDS = 1_800.0


class Hook(Protocol):
    """Someone to be told."""

    name: str

    async def deliver(self, event_id: str, event: HookEvent, body: bytes) -> None:
        """Tell one event, within a deadline of its own; ``Failed`` says why that did not work."""


def make_hook(settings: HookSettings) -> Hook:
    """Build what the settings describe; ``Misconfigured`` if a file or program is missing."""
    return CommandHook(settings) if settings.command else WebHook(settings)


def hook_key(settings: HookSettings) -> str:
    """Give what a hook is remembered by: changing whom it tells makes it another one, changing how does not."""
    target = msgspec.json.encode([settings.url, settings.command])
    return hashlib.sha256(target).hexdigest()[:16]


class HookLine:
    """The events that wait for one hook."""

    def __init__(
        self,
        hook: Hook,
        settings: HookSettings,
        ledger: HookLedger,
        *,
        wall: Callable[[], float],
        random: Random | None = None,
    ) -> None:
        self.settings = settings
        self.name = hook.name
        self._hook = hook
        self._ledger = ledger
        self._wall = wall
        self._random = random or Random()  # noqa: S311 - jitter
        self._page = ledger.page(hook_key(settings), wall())
        self._trouble: str | None = None

    @property
    def since(self) -> float:
        """When this hook was set up; not in the future, even if the clock was ahead then."""
        self._page.since = min(self._page.since, int(self._wall()))
        return self._page.since

    def wants(self, event: Event) -> bool:
        """Tell whether an event is new here."""
        return not self._page.knows(event.id)

    def put(self, event: Event, body: bytes) -> None:
        """Let an event wait. It is on the safe side once the ledger is saved."""
        self._page.waiting.append(Delivery(id=event.id, event=event.kind, body=body))

    async def tell_next(self) -> None:
        """Tell what is due, until there is nothing more; ``Failed`` while something could not be told."""
        while (delivery := self._next()) is not None:
            await self._tell(delivery)
        if self._trouble is not None:
            raise Failed(self._trouble)

    def _next(self) -> Delivery | None:
        now = self._wall()
        return next((delivery for delivery in self._page.waiting if _is_due(delivery, now)), None)

    async def _tell(self, delivery: Delivery) -> None:
        try:
            await self._hook.deliver(delivery.id, delivery.event, delivery.body)
        except Failed as error:
            self._put_off(delivery, str(error))
        else:
            self._cross_out(delivery)
            self._trouble = None
        await self._ledger.save(self._wall())

    def _put_off(self, delivery: Delivery, reason: str) -> None:
        delivery.attempts += 1
        left = self.settings.attempts - delivery.attempts
        if left <= 0:
            log.warning("hook %s: gave up on %s: %s", self.name, delivery.id, reason)
            self._cross_out(delivery)
            self._trouble = f"{delivery.id} failed after {delivery.attempts} attempts: {reason}"
            return
        pause = min(FIRST_PAUSE_SECONDS * 4.0 ** (delivery.attempts - 1), LONGEST_PAUSE_SECONDS)
        delivery.due_at = self._wall() + pause * self._random.uniform(0.75, 1.25)
        self._trouble = f"{delivery.id}: {reason}; {left} more attempts"

    def _cross_out(self, delivery: Delivery) -> None:
        if delivery in self._page.waiting:
            self._page.waiting.remove(delivery)
        self._page.done[delivery.id] = self._wall()


def _is_due(delivery: Delivery, now: float) -> bool:
    """Tell whether its pause is over, or longer than any: then the clock has been set back since."""
    return delivery.due_at <= now or delivery.due_at > now + 2 * LONGEST_PAUSE_SECONDS
