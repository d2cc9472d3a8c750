"""How nodes are reached: the ``reach`` key of a ``[[nodes]]`` table, told apart by ``by``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from msgspec import Meta, Struct

__all__ = [
    "FolderSettings",
    "GetStatusSettings",
    "GpustatSettings",
    "NodeInfoSettings",
    "PullSettings",
    "ReachSettings",
    "SshSettings",
    "XmlRpcSettings",
]

CommandLines = Literal["full", "program", "none"]
Interval = Annotated[
    float, Meta(ge=0.2, le=3600, description="Time from one report to the next, in seconds.")
]
Port = Annotated[int, Meta(ge=1, le=65_535, description="Port, unless the list names another.")]


class _Reached(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="by"):
    pass


class SshSettings(_Reached, frozen=True, kw_only=True, tag="ssh"):
    """Over SSH, with nothing installed on the node."""

    interval_seconds: Interval = 5.0
    port: Annotated[
        Port | None,
        Meta(description="Port, unless the list names another; default: the SSH configuration's."),
    ] = None
    user: Annotated[
        str | None,
        Meta(description="Login, unless the list names another; default: the SSH configuration's."),
    ] = None
    key_files: Annotated[
        tuple[Path, ...],
        Meta(description="Private keys; only these are tried. Default: SSH agent and configuration."),
    ] = ()
    config_file: Annotated[
        Path | None, Meta(description="SSH client configuration; default: what ssh itself reads.")
    ] = None
    known_hosts_file: Annotated[
        Path | None,
        Meta(
            description="Host keys; default ~/.ssh/known_hosts together with the hub's own file of accepted keys."
        ),
    ] = None
    host_keys: Annotated[
        Literal["strict", "accept_new"],
        Meta(description="strict: only known host keys. accept_new: trust and remember a host's first key."),
    ] = "strict"
    command_deadline_seconds: Annotated[
        float, Meta(ge=1, le=300, description="After this a command on the node is ended there.")
    ] = 10.0
    connect_deadline_seconds: Annotated[float, Meta(ge=1, le=300, description="Longest login.")] = 20.0
    connects_at_once: Annotated[int, Meta(ge=1, le=256, description="Logins under way at a time.")] = 8
    keepalive_seconds: Annotated[
        Annotated[float, Meta(ge=1, le=600)] | None,
        Meta(
            description="A link that is silent for three of these is dead; default: the interval, from 5 to 20 s."
        ),
    ] = None
    command_lines: Annotated[
        CommandLines, Meta(description="How much of a process's command line leaves the node.")
    ] = "full"


class PullSettings(_Reached, frozen=True, kw_only=True, tag="pull"):
    """Agents that listen (`gpuherd agent --listen`) and are dialled by the hub."""

    port: Port = 8472
    interval_seconds: Interval = 1.0
    is_tls: Annotated[
        bool, Meta(description="Dial with TLS; the agent's certificate is always verified.")
    ] = False
    tls_ca_file: Annotated[
        Path | None, Meta(description="Certificates (PEM) to trust instead of the system's own.")
    ] = None
    secret_file: Annotated[
        Path | None,
        Meta(
            description="File with the secret that the nodes' secrets are made from; default: `pull.secret` in the "
            "hub's state folder."
        ),
    ] = None
    connect_deadline_seconds: Annotated[
        float, Meta(ge=1, le=300, description="Longest time to connect, and again to prove each other.")
    ] = 10.0
    connects_at_once: Annotated[
        int,
        Meta(
            ge=1,
            le=1024,
            description="Nodes dialled at a time, those that do not answer promptly not counted.",
        ),
    ] = 32
    keepalive_seconds: Annotated[
        float, Meta(ge=1, le=600, description="A link that is silent for three of these is dead.")
    ] = 15.0


class NodeInfoSettings(_Reached, frozen=True, kw_only=True, tag="node_info"):
    """Nodes of the older HTTP tool that answer POST /get-status."""

    port: Port = 7080
    interval_seconds: Interval = 4.0
    deadline_seconds: Annotated[float, Meta(ge=0.1, le=300, description="Longest answer.")] = 4.0
    password_file: Annotated[Path | None, Meta(description="File with the nodes' password.")] = None


class XmlRpcSettings(_Reached, frozen=True, kw_only=True, tag="xmlrpc"):
    """Nodes of the older XML-RPC tool that answer gpu_stats()."""

    port: Port = 8043
    interval_seconds: Interval = 4.0
    deadline_seconds: Annotated[float, Meta(ge=0.1, le=300, description="Longest answer.")] = 2.0


ReachSettings = SshSettings | PullSettings | NodeInfoSettings | XmlRpcSettings


class FolderSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A ``[[folders]]`` table: a watched folder into which nodes' reports are dropped."""

    path: Annotated[Path, Meta(description="The folder; read only, never below it.")]
    interval_seconds: Annotated[
        float, Meta(ge=1, le=3600, description="How often a node's files are expected to be renewed.")
    ] = 20.0
    max_nodes: Annotated[
        int, Meta(ge=1, le=10_000, description="Hosts whose files are read; more are left out.")
    ] = 1024


class GpustatSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The ``[legacy.gpustat]`` table: take `gpustat --json` by POST / from nodes that have no credential."""

    listen: Annotated[str, Meta(description="IP address and port, as the old nodes have it: 0.0.0.0:3000.")]
    networks: Annotated[
        tuple[str, ...],
        Meta(
            min_length=1, description="Networks that may post and read, such as 192.168.0.0/24; nobody else."
        ),
    ]
    origins: Annotated[
        tuple[str, ...],
        Meta(
            description="Web pages that may read from other addresses, such as http://gpus.example.org; pages whose "
            "address is an IP in the networks may always."
        ),
    ] = ()
    interval_seconds: Annotated[
        float,
        Meta(
            ge=0.2,
            le=3600,
            description="How long a post may take to come after the one before, in seconds: the old script waits a "
            "second after each and starts Python anew.",
        ),
    ] = 4.0
    login_file: Annotated[
        Path | None,
        Meta(
            description="The old backend's .env with AUTH_USER and AUTH_PASS: answer the old page's POST /auth by it. "
            "Everyone in the networks may read without it all the same."
        ),
    ] = None
    max_nodes: Annotated[int, Meta(ge=1, le=10_000, description="Nodes that may appear by themselves.")] = 256
    max_nodes_per_sender: Annotated[
        int,
        Meta(
            ge=1,
            le=10_000,
            description="Names that may come from one address (of IPv6, from one /64 network); raise it where many "
            "machines share one.",
        ),
    ] = 16
    requests_per_second: Annotated[
        float, Meta(ge=1, le=10_000, description="Requests of one address; more are turned away.")
    ] = 50.0


class GetStatusSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The ``[legacy.get_status]`` table: answer GET /get-status like the older HTTP tool's main node."""

    listen: Annotated[str, Meta(description="IP address and port, as the old page has it: 0.0.0.0:7070.")]
    networks: Annotated[
        tuple[str, ...], Meta(min_length=1, description="Networks that may read; nobody else.")
    ]
    requests_per_second: Annotated[
        float, Meta(ge=1, le=10_000, description="Requests of one address; more are turned away.")
    ] = 50.0
