"""The hub's own way to a node, made so that it tells how far it comes and leaves nothing in the hub's folder."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

from gpuherd.agent.spec import resolve
from gpuherd.collect.remote import RemoteNode, node_script
from gpuherd.model.errors import Misconfigured
from gpuherd.model.targets import Target
from gpuherd.sources.following import ContactFailed, Way
from gpuherd.sources.push import NodeLinks
from gpuherd.sources.settings import PullSettings, ReachSettings, SshSettings
from gpuherd.sources.ssh.login import Login
from gpuherd.sources.ssh.offer import fetch_host_key
from gpuherd.sources.ssh.way import SshWay
from gpuherd.wiring.catalog import WAYS
from gpuherd.wiring.config import Config
from gpuherd.wiring.doctor.milestones import NodeRecorder, NotedReader
from gpuherd.wiring.doctor.steps import StepFailed
from gpuherd.wiring.ways.surroundings import ACCEPTED_KEYS, PULL_SECRET, Surroundings

__all__ = ["login_fact", "make_way", "shown_key", "take_accepted_keys"]

SHOW_SECONDS = 5.0


def take_accepted_keys(state_dir: Path, scratch: Path) -> Path:
    """Copy the host keys that the hub has accepted, for what is accepted now is not to be kept."""
    file = scratch / ACCEPTED_KEYS
    try:
        shutil.copyfile(state_dir / ACCEPTED_KEYS, file)
    except OSError:
        file.touch()
    return file


def make_way(reach: ReachSettings, recorder: NodeRecorder, config: Config, accepted_keys_file: Path) -> Way:
    """Make the way to one node; the paths of ``reach`` must be full ones.

    ``StepFailed`` or ``Misconfigured`` if what it needs is missing.
    """
    if isinstance(reach, SshSettings):
        return SshWay(
            reach,
            make_reader=lambda: NotedReader(
                RemoteNode(command_lines=reach.command_lines), recorder.milestones
            ),
            script=node_script(),
            accepted_keys_file=accepted_keys_file,
        )
    if isinstance(reach, PullSettings):
        _check_secret(reach.secret_file or config.hub.state_dir / PULL_SECRET)
    links = NodeLinks(recorder, monotonic=asyncio.get_running_loop().time)
    surroundings = Surroundings(state_dir=config.hub.state_dir, links=links, folder=config.folder)
    way: Way = resolve(WAYS[str(reach.__struct_config__.tag)])(reach, surroundings)
    return way


def _check_secret(file: Path) -> None:
    """See that there is a secret: the way would make one, and it would belong to whoever asked the doctor."""
    try:
        file.stat()
    except FileNotFoundError:
        raise StepFailed(
            "no secret yet",
            f"the hub has no secret for listening nodes yet ({file} is missing): start the hub, then give the node "
            "what `gpuherd node secret NAME` prints",
        ) from None
    except OSError as error:
        raise Misconfigured(f"{file} cannot be read: {error.strerror}; run this as the hub's user") from error


async def shown_key(target: Target, reach: SshSettings, accepted_keys_file: Path) -> str:
    """Say which host key a node shows, and why it is believed; nothing if it shows none."""
    try:
        async with asyncio.timeout(SHOW_SECONDS):
            shown = await fetch_host_key(target, reach, accepted_keys_file=accepted_keys_file)
    except (ContactFailed, TimeoutError):
        return ""  # following the node will tell why
    if shown.is_known:
        why = "known"
    elif reach.host_keys == "accept_new":
        why = "accepted as its first key (host_keys = accept_new)"
    else:
        why = "certified by a known authority"
    return f"{shown.offered.key.split()[0]} {shown.offered.fingerprint}, {why}"


def login_fact(login: Login) -> str:
    """Say as whom we logged in and which keys there were to show."""
    keys = [str(identity.file) for identity in login.identities if identity.key is not None]
    if login.agent_path and not (login.is_only_these and keys):
        keys.append("the SSH agent's")
    shown = keys[0] if len(keys) == 1 else f"one of {', '.join(keys)}" if keys else "a key"
    return f"as {login.where} with {shown}"
