"""How nodes are reached: the ``reach`` key of a ``[[nodes]]`` table, told apart by ``by``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from msgspec import Meta, Struct

__all__ = [
    "FolderSettings",
    "GetStatusSettings",
    "GpustatSettings",
    "HttpFilesSettings",
    "NodeInfoSettings",
    "PullSettings",
    "ReachSettings",
    "SshSettings",
    "XmlRpcSettings",
]

CommandLines = Literal["full", "program", "none"]
Interval = Annotated[float, Meta(ge=0.2, le=3600, description="Time between two reports, in seconds.")]
Port = Annotated[int, Meta(ge=1, le=65_535, description="Port, unless the list sets another.")]


class _Reached(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="by"):
    pass


class SshSettings(_Reached, frozen=True, kw_only=True, tag="ssh"):
    """Over SSH, with nothing installed on the node."""

    interval_seconds: Interval = 5.0
    port: Annotated[
        Port | None,
        Meta(description="Port, unless the list sets another. Default: from the SSH configuration."),
    ] = None
    user: Annotated[
        str | None,
        Meta(description="User, unless the list sets another. Default: from the SSH configuration."),
    ] = None
    key_files: Annotated[
        tuple[Path, ...],
        Meta(description="Private keys; only these are used. Default: SSH agent and configuration."),
    ] = ()
    config_file: Annotated[
        Path | None, Meta(description="SSH client configuration. Default: the files that ssh reads.")
    ] = None
    known_hosts_file: Annotated[
        Path | None,
        Meta(
            description="File with host keys. Default: ~/.ssh/known_hosts and the hub's own file of accepted "
            "keys."
        ),
    ] = None
    host_keys: Annotated[
        Literal["strict", "accept_new"],
        Meta(description="strict: only known host keys. accept_new: trust and remember a host's first key."),
    ] = "strict"
    command_deadline_seconds: Annotated[
        float,
        Meta(
            ge=1, le=300, description="After this time, a command on the node is stopped there, in seconds."
        ),
    ] = 10.0
    connect_deadline_seconds: Annotated[
        float, Meta(ge=1, le=300, description="Longest login, in seconds.")
    ] = 20.0
    connects_at_once: Annotated[int, Meta(ge=1, le=256, description="Number of logins at the same time.")] = 8
    keepalive_seconds: Annotated[
        Annotated[float, Meta(ge=1, le=600)] | None,
        Meta(
            description="A connection that is silent for three times this is closed, in seconds. Default: the "
            "interval, from 5 to 20 s."
        ),
    ] = None
    command_lines: Annotated[
        CommandLines,
        Meta(description="How much of a process's command line leaves the node: full, program or none."),
    ] = "full"


class PullSettings(_Reached, frozen=True, kw_only=True, tag="pull"):
    """Agents that listen (`gpuherd agent --listen`); the hub connects to them."""

    port: Port = 8472
    interval_seconds: Interval = 1.0
    is_tls: Annotated[bool, Meta(description="Use TLS; the agent's certificate is always verified.")] = False
    tls_ca_file: Annotated[
        Path | None, Meta(description="Certificates (PEM) to trust instead of the system's own.")
    ] = None
    secret_file: Annotated[
        Path | None,
        Meta(
            description="File with the master secret that the nodes' secrets are derived from. Default: "
            "`pull.secret` in the hub's state folder."
        ),
    ] = None
    connect_deadline_seconds: Annotated[
        float,
        Meta(
            ge=1,
            le=300,
            description="Longest time to connect, and again to authenticate each other, in seconds.",
        ),
    ] = 10.0
    connects_at_once: Annotated[
        int,
        Meta(
            ge=1,
            le=1024,
            description="Number of nodes to connect to at the same time, not counting those that respond slowly.",
        ),
    ] = 32
    keepalive_seconds: Annotated[
        float,
        Meta(
            ge=1,
            le=600,
            description="A connection that is silent for three times this is closed, in seconds.",
        ),
    ] = 15.0


class NodeInfoSettings(_Reached, frozen=True, kw_only=True, tag="node_info"):
    """Nodes of the older HTTP tool that answer POST /get-status."""

    port: Port = 7080
    interval_seconds: Interval = 4.0
    deadline_seconds: Annotated[
        float, Meta(ge=0.1, le=300, description="Longest wait for a response, in seconds.")
    ] = 4.0
    password_file: Annotated[Path | None, Meta(description="File with the nodes' password.")] = None


class XmlRpcSettings(_Reached, frozen=True, kw_only=True, tag="xmlrpc"):
    """Nodes of the older XML-RPC tool that answer gpu_stats()."""

    port: Port = 8043
    interval_seconds: Interval = 4.0
    deadline_seconds: Annotated[
        float, Meta(ge=0.1, le=300, description="Longest wait for a response, in seconds.")
    ] = 2.0


class HttpFilesSettings(_Reached, frozen=True, kw_only=True, tag="http_files"):
    """Nodes that serve the files of gpu-run.sh over HTTP."""

    port: Port = 8114
    interval_seconds: Interval = 10.0
    deadline_seconds: Annotated[
        float, Meta(ge=0.1, le=300, description="Longest wait for a response, in seconds.")
    ] = 5.0


ReachSettings = SshSettings | PullSettings | NodeInfoSettings | XmlRpcSettings | HttpFilesSettings


class FolderSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A ``[[folders]]`` table: a watched folder to which reports of nodes are copied."""

    path: Annotated[Path, Meta(description="The folder. It is only read; subfolders are ignored.")]
    interval_seconds: Annotated[
        float,
        Meta(ge=1, le=3600, description="How often a node's files are expected to be updated, in seconds."),
    ] = 20.0
    max_nodes: Annotated[
        int,
        Meta(
            ge=1,
            le=10_000,
            description="Maximum number of hosts, known ones first; the page shows how many are left out.",
        ),
    ] = 1024


class GpustatSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The ``[legacy.gpustat]`` table: accept `gpustat --json` (`POST /`) from nodes without a credential."""

    listen: Annotated[
        str, Meta(description="IP address and port, as configured on the old nodes: 0.0.0.0:3000.")
    ]
    networks: Annotated[
        tuple[str, ...],
        Meta(
            min_length=1,
            description="Networks that may post and read, such as 192.168.0.0/24. All others are rejected.",
        ),
    ]
    origins: Annotated[
        tuple[str, ...],
        Meta(
            description="Web pages at other addresses that may read, such as http://gpus.example.org. Pages whose "
            "address is an IP in the networks always may."
        ),
    ] = ()
    interval_seconds: Annotated[
        float,
        Meta(
            ge=0.2,
            le=3600,
            description="Expected time between two posts of a node, in seconds. The old script waits a second "
            "after each and starts Python again.",
        ),
    ] = 4.0
    login_file: Annotated[
        Path | None,
        Meta(
            description="The old backend's .env with AUTH_USER and AUTH_PASS, for the old page's POST /auth. "
            "Everyone in the networks can still read without it."
        ),
    ] = None
    max_nodes: Annotated[int, Meta(ge=1, le=10_000, description="Maximum number of nodes.")] = 256
    max_nodes_per_sender: Annotated[
        int,
        Meta(
            ge=1,
            le=10_000,
            description="Maximum number of names from one address (with IPv6, from one /64). Raise it if many "
            "machines share an address.",
        ),
    ] = 16
    requests_per_second: Annotated[
        float,
        Meta(
            ge=1,
            le=10_000,
            description="Maximum number of requests per second from one address; more are rejected.",
        ),
    ] = 50.0


class GetStatusSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The ``[legacy.get_status]`` table: answer GET /get-status like the older HTTP tool's main node."""

    listen: Annotated[
        str, Meta(description="IP address and port, as configured in the old page: 0.0.0.0:7070.")
    ]
    networks: Annotated[
        tuple[str, ...], Meta(min_length=1, description="Networks that may read. All others are rejected.")
    ]
    requests_per_second: Annotated[
        float,
        Meta(
            ge=1,
            le=10_000,
            description="Maximum number of requests per second from one address; more are rejected.",
        ),
    ] = 50.0
