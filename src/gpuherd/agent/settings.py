"""What an operator can say about an agent; the ``[agent]`` table of gpuherd.toml."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

from gpuherd.model.text import Label

__all__ = ["AgentSettings", "CommandLines"]

CommandLines = Literal["full", "program", "none"]
LOOPBACK = ("127.0.0.0/8", "::1/128")


class AgentSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings of one agent. Everything has a default; to report, set hub_url or listen."""

    hub_url: Annotated[
        str | None,
        Meta(
            description="Address of the hub, such as https://gpus.example.org or http://127.0.0.1:9400/base. It "
            "must start with http:// or https:// and contain no user name or password.",
        ),
    ] = None
    listen: Annotated[
        str | None,
        Meta(
            description="IP address and port on which to wait for the hub to connect, such as 0.0.0.0:8472, "
            "instead of hub_url. Default port: 8472.",
        ),
    ] = None
    listen_secret_file: Annotated[
        str | None,
        Meta(
            description="File with the secret that this node shares with the hub that connects to it; `gpuherd "
            "node secret NAME` prints it on the hub. Default: systemd's credential "
            "`gpuherd-listen-secret`, if there is one.",
        ),
    ] = None
    listen_tls_certificate: Annotated[
        str | None,
        Meta(description="PEM file with the certificate chain, to listen with TLS; needs listen_tls_key."),
    ] = None
    listen_tls_key: Annotated[str | None, Meta(description="PEM file with the private key.")] = None
    listen_status_networks: Annotated[
        tuple[str, ...],
        Meta(
            max_length=64,
            description="Networks that may use GET /status of a listening agent without a password.",
        ),
    ] = LOOPBACK
    node_info_listen: Annotated[
        str | None,
        Meta(
            description="IP address and port on which to answer POST /get-status like the older HTTP tool's "
            "node_info.py, such as 0.0.0.0:7080. Off by default, because its password is sent in "
            "clear text.",
        ),
    ] = None
    node_info_password_file: Annotated[
        str | None,
        Meta(
            description="File with the password for POST /get-status. Default: systemd's credential "
            "`gpuherd-node-password`, if there is one.",
        ),
    ] = None
    node_info_networks: Annotated[
        tuple[str, ...],
        Meta(max_length=64, description="Networks that may use POST /get-status, with the password."),
    ] = LOOPBACK
    interval_seconds: Annotated[
        float, Meta(ge=0.1, le=3600, description="Time between two samples, in seconds.")
    ] = 1.0
    collect_deadline_seconds: Annotated[
        float,
        Meta(
            ge=0.1,
            le=600,
            description="How long a single driver call may take before the driver counts as hung and the probe is "
            "replaced, in seconds.",
        ),
    ] = 5.0
    state_dir: Annotated[
        str | None,
        Meta(
            description="Folder for credential, spool and the list of known devices. Default: systemd's "
            "STATE_DIRECTORY; otherwise /var/lib/gpuherd/agent for root, or "
            "~/.local/state/gpuherd/agent.",
        ),
    ] = None
    credential_file: Annotated[
        str | None,
        Meta(
            description="File with the node's credential. Default: `credential` in the state folder, where "
            "enrolment stores it.",
        ),
    ] = None
    join_token_file: Annotated[
        str | None,
        Meta(
            description="File with a join token, read once if there is no credential yet; `-` is standard input. "
            "Default: systemd's credential `gpuherd-join-token`, if there is one.",
        ),
    ] = None
    node_name: Annotated[
        Label | None,
        Meta(description="Name to request at enrolment; the hub may choose another. Default: the host name."),
    ] = None
    spool_max_bytes: Annotated[
        int,
        Meta(
            ge=0,
            le=2**40,
            description="Disk space for samples that the hub has not confirmed, in bytes. Beyond it, the oldest "
            "are dropped and counted. 0 keeps everything in memory (at most 8 MiB).",
        ),
    ] = 256 * 1024 * 1024
    collectors: Annotated[
        tuple[Label, ...],
        Meta(max_length=16, description="Collectors, tried in this order. Empty: only the host is read."),
    ] = ("nvml", "nvidia_smi", "amd_smi", "rocm_smi")
    pcie_throughput: Annotated[
        bool, Meta(description="Also read PCIe throughput; this costs 20 to 40 ms per GPU and sample.")
    ] = False
    command_lines: Annotated[
        CommandLines,
        Meta(
            description="How much of a process's command line leaves the node: all of it with secrets removed "
            "(full), only the program's name (program), or nothing (none)."
        ),
    ] = "full"
    tls_ca_file: Annotated[
        str | None,
        Meta(
            description="Certificates (PEM) to trust for an https hub instead of the system's own.",
        ),
    ] = None
