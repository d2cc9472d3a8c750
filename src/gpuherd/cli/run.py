"""``gpuherd run``: a command on GPUs that were free."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any

import click

from gpuherd.cli.asking import hub_options, own_zone, tell
from gpuherd.cli.child import Child, NotStarted
from gpuherd.cli.choosing import Asked, environment_of, wish_options
from gpuherd.cli.interrupts import Interrupted, Interrupts
from gpuherd.cli.progress import Progress
from gpuherd.cli.saying import missing_package, say
from gpuherd.cli.taking import Taken, Taking
from gpuherd.cli.wait import taking_of, tell_booking, wait_until_taken
from gpuherd.model.errors import GpuherdError
from gpuherd.model.text import clean

if TYPE_CHECKING:
    from gpuherd.client.keeping import BookingKeeper

__all__ = ["command"]

FAILED_BEFORE = 125


@click.command(context_settings={"ignore_unknown_options": False, "allow_interspersed_args": False})
@wish_options
@click.option(
    "--node",
    metavar="NODE",
    help="Name of this machine in the herd, if it differs from the host name. Other machines are refused.",
)
@click.option("--wait", "is_waiting", is_flag=True, help="Wait until enough GPUs are free.")
@click.option("--timeout", metavar="TIME", help="With --wait: give up after this time, e.g. 8h.")
@click.option(
    "--book",
    "book_for",
    metavar="TIME",
    help="Book the GPUs for this long, e.g. 4h; released when COMMAND ends.",
)
@click.option("--extend", metavar="TIME", help="With --book: extend the booking by this much before it ends.")
@click.option("--title", help="With --book: purpose, visible to everyone.  [default: the command's name]")
@hub_options
@click.argument("argv", nargs=-1, required=True, metavar="-- COMMAND…", type=click.UNPROCESSED)
def command(
    argv: tuple[str, ...],
    node: str | None,
    is_waiting: bool,
    timeout: str | None,
    book_for: str | None,
    extend: str | None,
    title: str | None,
    hub_url: str | None,
    token_file: Path | None,
    **wanted: Any,
) -> None:
    """Run COMMAND on free GPUs of this machine.

    \b
    gpuherd run -- python train.py
    gpuherd run -n 2 --mem 40G --wait --book 8h --extend 4h -- torchrun --nproc-per-node 2 train.py

    COMMAND runs on this machine. To use another machine's GPUs, log in there first.

    A lock prevents other gpuherd run processes on this machine, from any user, from taking the same GPUs. With --book,
    the GPUs are also booked while COMMAND runs, and released when it ends, even if it crashes. Signals are passed on to
    COMMAND.

    Exit status: that of COMMAND, or 128 + n if signal n ended it; 127 COMMAND not found, 126 COMMAND cannot be run, 125
    no free GPU or another error before COMMAND started.
    """
    if book_for is None and extend is not None:
        raise click.UsageError("--extend needs --book")
    if book_for is None and title is not None:
        raise click.UsageError("--title needs --book")
    if timeout is not None and not is_waiting:
        raise click.UsageError("--timeout needs --wait")
    with _telling(), Interrupts() as interrupts:
        asked = Asked(
            hub_url=hub_url,
            token_file=token_file,
            node=node,
            anywhere=False,
            book_for=book_for,
            only_here=True,
            holding=interrupts.held,
            **wanted,
        )
        progress = Progress(f"{asked.search.wish} {asked.where}") if is_waiting else None
        named = title if title is not None else PurePath(argv[0]).name[:100]
        taking = taking_of(asked, interrupts, progress, book_for=book_for, title=named, locks=True)
        try:
            taken = _taken(asked, taking, progress, timeout=timeout)
            tell_booking(taken)
            code = _run(asked, taken, argv, interrupts, extend=extend)
        finally:
            try:
                if progress is not None:
                    progress.end()
            finally:
                taking.give_back()
    sys.exit(code)


@contextmanager
def _telling() -> Iterator[None]:
    """Turn what goes wrong before the command has run into a sentence and the code 125; its own codes stay its own."""
    from gpuherd.client import HubRefused

    try:
        yield
    except Interrupted as error:
        sys.exit(error.exit_code)
    except HubRefused as error:
        tell(error)
        sys.exit(FAILED_BEFORE)
    except GpuherdError as error:
        say(f"gpuherd: {error}")
        sys.exit(error.exit_code if isinstance(error, NotStarted) else FAILED_BEFORE)
    except OSError as error:
        what = "something went wrong" if error.filename is None else clean(str(error.filename), 300)
        say(f"gpuherd: {what}: {error.strerror or error}")
        sys.exit(FAILED_BEFORE)
    except ModuleNotFoundError as error:
        missing = missing_package(error)
        if missing is None:
            raise
        say(f"gpuherd: {missing}")
        sys.exit(FAILED_BEFORE)


def _taken(asked: Asked, taking: Taking, progress: Progress | None, *, timeout: str | None) -> Taken:
    if progress is not None:
        return wait_until_taken(taking, progress, timeout=timeout)
    taken = taking.attempt()
    if taken is None:
        if taking.last is None:
            raise AssertionError("a try that finds nothing has looked")
        raise asked.nothing(*taking.last)
    return taken


def _run(
    asked: Asked, taken: Taken, argv: tuple[str, ...], interrupts: Interrupts, *, extend: str | None
) -> int:
    environment = _environment(taken)
    if warning := _slices_warning(taken):
        say(f"gpuherd: {warning}")
    child = Child(argv, environment)
    interrupts.finish()
    keeper: BookingKeeper | None = None
    try:
        try:
            keeper = _keeper(asked, taken, extend)
        except RuntimeError as error:  # no thread can be had; the command runs all the same
            say(f"gpuherd: the booking is no longer extended: {error}")
        return child.wait()
    finally:
        if keeper is not None:
            keeper.stop()
        child.forget_signals()


def _environment(taken: Taken) -> dict[str, str]:
    """Give the command's environment; devices are named in the order in which programs count them."""
    from gpuherd.client.choosing import by_node

    (devices,) = by_node(taken.chosen).values()
    environment = {
        **os.environ,
        **environment_of(taken.chosen),
        "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
        "GPUHERD_DEVICES": ",".join(candidate.place for candidate in devices),
    }
    environment.pop("GPUHERD_BOOKING", None)
    if taken.booking is not None:
        environment["GPUHERD_BOOKING"] = str(taken.booking.id)
    return environment


def _slices_warning(taken: Taken) -> str | None:
    """Say what CUDA makes of several slices in one variable; none if there are not several."""
    count = sum(one.gpu.uuid.startswith("MIG-") for one in taken.chosen)
    if count < 2:
        return None
    return (
        f"these are {count} MIG slices, but a CUDA process can use only one: start a process for each, with "
        "one of the ids in its CUDA_VISIBLE_DEVICES"
    )


def _keeper(asked: Asked, taken: Taken, extend: str | None) -> BookingKeeper | None:
    """Look after the booking. Made after the command was started: threads keep signals blocked as they are then."""
    if taken.booking is None or asked.hub is None:
        return None
    from gpuherd.client.keeping import BookingKeeper

    ahead = taken.look.now - time.time()
    keeper = BookingKeeper(
        asked.hub,
        taken.booking,
        tell=lambda words: say(f"gpuherd: {words}"),
        extend=extend,
        zone=own_zone(None),
        hub_now=lambda: time.time() + ahead,
    )
    keeper.start()
    return keeper
