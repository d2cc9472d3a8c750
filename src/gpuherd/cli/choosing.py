"""What ``pick``, ``wait`` and ``run`` share: their options, one look after another, and how what they found is told."""

from __future__ import annotations

import getpass
import json
import os
import re
import socket
from collections.abc import Callable, Collection
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from gpuherd.cli.asking import client
from gpuherd.cli.looking import is_given
from gpuherd.model.errors import Refused
from gpuherd.model.text import clean

if TYPE_CHECKING:
    from gpuherd.client import HubClient
    from gpuherd.client.choosing import Candidate, Search, Sorted
    from gpuherd.client.look import Look
    from gpuherd.client.views import Booking

__all__ = ["Asked", "as_json", "as_text", "environment_of", "place_options", "wish_options"]

DEFAULT_FOR = "4h"
_PLAIN_NAME = re.compile(r"[\w.-]+", re.ASCII)
F = TypeVar("F", bound=Callable[..., Any])


def wish_options(function: F) -> F:
    """Add the options that say what is wanted."""
    for option in (
        click.option(
            "--here",
            is_flag=True,
            help="Use this machine's own data, without a hub. Ignores bookings.",
        ),
        click.option(
            "--max-age",
            metavar="TIME",
            default="60s",
            show_default=True,
            help="Ignore nodes whose last report is older than this.",
        ),
        click.option(
            "--for",
            "duration",
            metavar="TIME",
            help=f"Skip GPUs that others have booked within this time from now.  [default: {DEFAULT_FOR}]",
        ),
        click.option("--same-node", is_flag=True, help="All GPUs on one node."),
        click.option(
            "--type",
            "kind",
            metavar="NAME",
            help="GPU type, e.g. a100, a100-80g or 1g.10gb.",
        ),
        click.option("--mem", metavar="SIZE", help="Minimum memory per GPU, e.g. 40G."),
        click.option(
            "-n",
            "--count",
            type=click.IntRange(1, 1000),
            default=1,
            show_default=True,
            help="Number of GPUs.",
        ),
    ):
        function = option(function)
    return function


def place_options(function: F) -> F:
    """Add the options that say where, for commands that need not run there."""
    for option in (
        click.option("--anywhere", is_flag=True, help="Search all nodes; prints the node as well."),
        click.option("--node", metavar="NODE", help="Search this node; prints the node as well."),
    ):
        function = option(function)
    return function


class Asked:
    """What was asked for, and the means to find it. Everything on the command line is checked here, before any look."""

    def __init__(
        self,
        *,
        count: int,
        mem: str | None,
        kind: str | None,
        same_node: bool,
        duration: str | None,
        max_age: str,
        here: bool,
        node: str | None,
        anywhere: bool,
        hub_url: str | None,
        token_file: Path | None,
        book_for: str | None = None,
        only_here: bool = False,
        holding: Callable[[], AbstractContextManager[None]] = nullcontext,
    ) -> None:
        """``holding`` gives a context that no signal interrupts.

        ``only_here``: the devices are for a command on this machine, so a named node must be this machine.
        """
        from gpuherd.client.choosing import Search
        from gpuherd.client.wanted import Wish, read_size, read_span, read_type

        if sum((here, node is not None, anywhere)) > 1:
            raise click.UsageError("use only one of --here, --node and --anywhere")
        if here and (is_given("hub_url") or is_given("token_file") or book_for is not None):
            raise click.UsageError("--here uses no hub; leave out --hub and --token-file")
        try:
            self.search = Search(
                wish=Wish(
                    count=count,
                    type_words=frozenset() if kind is None else read_type(kind),
                    min_memory_bytes=None if mem is None else read_size(mem),
                    same_node=same_node,
                ),
                seconds=read_span(duration or DEFAULT_FOR),
                is_for_booking=book_for is not None,
                max_age_seconds=read_span(max_age),
            )
            if duration is None and book_for is not None:
                self.search = _for_as_long(self.search, book_for)
        except Refused as error:
            raise click.UsageError(str(error)) from None
        self.is_anywhere = anywhere
        self.node_name = node
        self.hub: HubClient | None = None if here else client(hub_url, token_file)
        self.person = f"{_user_name()}@{socket.gethostname()}"
        self._holding = holding
        self._is_checked = only_here and node is not None and not here
        self._ids_here: tuple[frozenset[str], frozenset[str]] = (frozenset(), frozenset())
        """The node's devices when this machine was last read, and this machine's devices."""

    def look(self, *, ahead_seconds: int = 0) -> Look:
        """Look once, at bookings so far ahead at least."""
        from gpuherd.client.look import look_at

        if self.hub is None:
            return self._look_here()
        look = look_at(
            self.hub,
            ahead_seconds=max(self.search.seconds, ahead_seconds),
            max_age_seconds=self.search.max_age_seconds,
            node=None if self.is_anywhere else self._meant,
        )
        return self._of_this_machine(look) if self._is_checked else look

    def _of_this_machine(self, look: Look) -> Look:
        """Return only the devices that this machine has; ``Refused`` if the named node is another machine."""
        from msgspec import structs

        from gpuherd.client.look import node_called

        node = node_called(look.herd, self._meant)
        told = frozenset(gpu.uuid for gpu in node.devices)
        if not told:
            return look
        ids = self._device_ids_here(told)
        if ids.isdisjoint(told):
            name, host = clean(node.name, 60), clean(socket.gethostname(), 60)
            why = f"has none of the GPUs of {name}" if ids else "has no readable GPU"
            raise Refused(
                "another_machine",
                f"gpuherd run works only on the machine you are on, and this one ({host}) {why}. Log in to {name} "
                f"and run it there, or choose its GPUs with: gpuherd pick --node {name}",
            )
        kept = structs.replace(node, devices=tuple(gpu for gpu in node.devices if gpu.uuid in ids))
        nodes = tuple(kept if each is node else each for each in look.herd.nodes)
        return structs.replace(look, herd=structs.replace(look.herd, nodes=nodes))

    def _device_ids_here(self, told: frozenset[str]) -> frozenset[str]:
        """Read which devices this machine has; read again only if those of the node have changed."""
        from gpuherd.model.errors import Failed
        from gpuherd.wiring.here import device_ids_here

        if self._ids_here[0] != told:
            try:
                with self._holding():
                    self._ids_here = (told, device_ids_here())
            except Failed as error:
                raise Refused(
                    "another_machine",
                    f"cannot tell whether this machine is {clean(self._meant, 60)}: {error}",
                ) from error
        return self._ids_here[1]

    @property
    def _meant(self) -> str:
        return self.node_name or socket.gethostname()

    def _look_here(self) -> Look:
        from gpuherd.client.booked_times import BookedTimes
        from gpuherd.client.look import Look
        from gpuherd.wiring.here import look_here

        with self._holding():  # an exception out of a signal would get lost in its event loop
            herd = look_here()
        return Look(herd=herd, booked=BookedTimes(), now=herd.time)

    def sort(self, look: Look, *, avoid: Collection[str] = frozenset()) -> Sorted:
        """Sort the devices of the kind where they are wanted; ``Refused`` if it cannot be told where that is."""
        return self._search(look).sort(look.herd, look.booked, look.now, avoid=avoid)

    def _search(self, look: Look) -> Search:
        from msgspec import structs

        from gpuherd.client.look import node_called

        if self.hub is None or self.is_anywhere:
            return self.search
        node = node_called(look.herd, self._meant, is_this_host=self.node_name is None)
        return structs.replace(self.search, node_ids=frozenset([node.id]))

    def choose(self, found: Sorted) -> tuple[Candidate, ...] | None:
        """Choose as many as are wanted; none if that cannot be."""
        from gpuherd.client.choosing import choose

        return choose(found.able, self.search.wish, person=self.person)

    @property
    def where(self) -> str:
        """Say where it is wanted."""
        if self.is_anywhere:
            return "in the herd"
        return "on this machine" if self.node_name is None else f"on {clean(self.node_name, 60)}"

    def nothing(self, look: Look, found: Sorted) -> Refused:
        """Say why nothing can be had."""
        from gpuherd.client.choosing import most_together
        from gpuherd.client.look import warnings_of

        wish = self.search.wish
        if not found.able and not found.others:
            return Refused("nothing_such", f"no such GPU {self.where} ({wish} requested){self._slices(look)}")
        most = most_together(found.able, wish)
        told = f"; {found.told()}" if found.others else ""
        lines = [f"{wish} requested {self.where}, {most or 'none'} available{told}"]
        lines += [f"  the hub says: {warning}" for warning in warnings_of(look.herd)]
        return Refused("nothing_free", "\n".join(lines))

    def _slices(self, look: Look) -> str:
        """Say if there would be slices."""
        from msgspec import structs

        search = self._search(look)
        mig = structs.replace(search.wish, type_words=search.wish.type_words | {"mig"})
        if structs.replace(search, wish=mig).sort(look.herd, look.booked, look.now).known:
            return "; to include slices, use --type mig"
        return ""


def _for_as_long(search: Search, book_for: str) -> Search:
    """Stay clear of bookings for as long as one is to be made; an end such as "friday 18:00" only the hub can read."""
    from msgspec import structs

    from gpuherd.client.wanted import read_span

    try:
        return structs.replace(search, seconds=read_span(book_for))
    except Refused:
        return search


def _user_name() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return str(os.getuid())


def environment_of(chosen: Collection[Candidate]) -> dict[str, str]:
    """Give the variable that makes programs use these devices, which are on one node."""
    from gpuherd.client.choosing import by_node, environment_name

    (devices,) = by_node(chosen).values()
    return {environment_name(devices[0].gpu): ",".join(candidate.gpu.uuid for candidate in devices)}


def as_text(chosen: Collection[Candidate], *, with_node: bool) -> str:
    """Give one line per node: a variable for the environment, after the node's name if that is to be told."""
    from gpuherd.client.choosing import by_node

    lines = []
    for devices in by_node(chosen).values():
        ((name, value),) = environment_of(devices).items()
        lines.append(f"{_plain_name(devices[0])} {name}={value}" if with_node else f"{name}={value}")
    return "\n".join(lines)


def _plain_name(candidate: Candidate) -> str:
    """Give a name of the node that a shell takes as one plain word."""
    names = (candidate.node.name, candidate.node.id)
    return next((name for name in names if _PLAIN_NAME.fullmatch(name)), "?")


def as_json(look_time: float, chosen: Collection[Candidate], booking: Booking | None) -> str:
    """Give what docs/pick.md describes; nothing in it can act on a terminal."""
    from gpuherd.client.choosing import by_node

    nodes = [
        {
            "node_id": node_id,
            "name": devices[0].node.name,
            "hostname": None if devices[0].node.host is None else devices[0].node.host.hostname,
            "environment": environment_of(devices),
            "devices": [
                {
                    "uuid": one.gpu.uuid,
                    "index": one.gpu.facts.index,
                    "place": one.place,
                    "name": one.gpu.short_name or one.gpu.facts.name,
                    "memory_total_bytes": one.gpu.facts.memory_total_bytes,
                    "is_booked_by_you": one.is_own or booking is not None,
                }
                for one in devices
            ],
        }
        for node_id, devices in by_node(chosen).items()
    ]
    made = None if booking is None else {"id": booking.id, "ends_at": booking.ends_at}
    return json.dumps({"time": look_time, "nodes": nodes, "booking": made}, indent=2)
