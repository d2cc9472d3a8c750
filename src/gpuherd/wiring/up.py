"""``gpuherd up``: hub, page and agent of one machine, with nothing to set up."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any

from gpuherd.api.hub import Hub
from gpuherd.model.errors import Misconfigured
from gpuherd.wiring.companion import keep_running
from gpuherd.wiring.config import Config
from gpuherd.wiring.outfit import configured_hub

__all__ = ["stop_signals", "tell_setup_link", "up", "write_secret"]


log = logging.getLogger(__name__)

END_SECONDS = 14.0
"""Time that the hub has after a signal to save its state and to close the nodes' links."""


def _end_without_waiting() -> None:
    """End the program, whatever its threads wait for: a hanging disk would block it forever."""
    time.sleep(END_SECONDS)
    os.write(
        2,
        b"gpuherd: stopped without waiting any longer, because the disk or the database does not respond; "
        b"what was not saved was not acknowledged, so the nodes send it again\n",
    )
    os._exit(1)


def stop_signals() -> asyncio.Event:
    """Return an event that SIGTERM and SIGINT set; the program ends a few seconds later in any case.

    Not by ``loop.add_signal_handler``: that writes the signal into the pipe that wakes the loop, and under heavy load
    from other threads the pipe can be full and the signal lost.
    """
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: _stop(loop, stop))
    return stop


def _stop(loop: asyncio.AbstractEventLoop, stop: asyncio.Event) -> None:
    threading.Thread(target=_end_without_waiting, name="end in time", daemon=True).start()
    loop.call_soon_threadsafe(stop.set)


def write_secret(file: Path, secret: str) -> None:
    """Write a file that only this user can read, whole or not at all; ``Misconfigured`` if that is impossible."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        fresh = file.with_name(f".{file.name}.new")
        fresh.unlink(missing_ok=True)
        with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as handle:
            handle.write(secret + "\n")
        fresh.replace(file)
    except OSError as error:
        raise Misconfigured(f"cannot write {file}: {error.strerror}; choose another --state-dir") from error


async def run_beside(hub: Hub, stop: asyncio.Event, *companions: Coroutine[Any, Any, None]) -> None:
    """Serve until ``stop``, with processes beside the hub."""
    tasks = [asyncio.ensure_future(companion) for companion in companions]
    try:
        await hub.run_until(stop)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def tell_setup_link(hub: Hub, tell: Callable[[str], None]) -> None:
    """Print the link that makes the first admin, as long as there is none."""
    link = await hub.setup_link()
    if link is not None:
        tell(f"Nobody can log in yet. To become the first admin, open this link within a day: {link}")


async def up(config: Config, tell: Callable[[str], None], config_arguments: Sequence[str] = ()) -> None:
    """Run until told to stop. This machine is enrolled by itself; its credential is renewed at each start."""
    stop = stop_signals()
    agent_dir = config.hub.state_dir / "agent"
    async with configured_hub(config) as hub:
        log.info("configuration: %s", config.source.name)
        if hub.are_records_missing:  # the log has said it; until then there is only the page
            tell(f"gpuherd is up, without an agent: {hub.url}   (Ctrl+C stops it)")
            await hub.run_until(stop)
            return
        enrolled = await hub.admit(config.agent.node_name or socket.gethostname())
        write_secret(agent_dir / "credential", enrolled.credential)
        tell(f"gpuherd is up: {hub.url}   (Ctrl+C stops it)")
        await tell_setup_link(hub, tell)
        arguments = [
            "-m",
            "gpuherd",
            "agent",
            *config_arguments,
            "--hub",
            hub.url,
            "--state-dir",
            str(agent_dir),
        ]
        await run_beside(hub, stop, keep_running("the agent", arguments))
