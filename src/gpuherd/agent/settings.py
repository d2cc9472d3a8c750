"""What an operator can say about an agent; the ``[agent]`` table of gpuherd.toml."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

from gpuherd.model.text import Label

__all__ = ["AgentSettings", "CommandLines"]

CommandLines = Literal["full", "program", "none"]
LOOPBACK = ("127.0.0.0/8", "::1/128")


class AgentSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings of one agent. Everything has a default; only ``hub_url`` or ``listen`` is needed to report."""

    hub_url: Annotated[
        str | None,
        Meta(
            description="Where the hub is, such as https://gpus.example.org or http://127.0.0.1:9400/base. "
            "Must start with http:// or https:// and carry no user name or password.",
        ),
    ] = None
    listen: Annotated[
        str | None,
        Meta(
            description="IP address and port on which to wait for a hub that dials, such as 0.0.0.0:8472; instead "
            "of hub_url. Without a port it is 8472.",
        ),
    ] = None
    listen_secret_file: Annotated[
        str | None,
        Meta(
            description="File with the secret that this node shares with the hub that dials it; the hub prints it "
            "with `gpuherd hub node secret NAME`. Default: systemd's credential `gpuherd-listen-secret` if there "
            "is one.",
        ),
    ] = None
    listen_tls_certificate: Annotated[
        str | None,
        Meta(description="PEM file with the certificate chain to listen with TLS; needs listen_tls_key."),
    ] = None
    listen_tls_key: Annotated[str | None, Meta(description="PEM file with the private key.")] = None
    listen_status_networks: Annotated[
        tuple[str, ...],
        Meta(
            max_length=64,
            description="Networks that may ask a listening agent for GET /status without a password.",
        ),
    ] = LOOPBACK
    node_info_listen: Annotated[
        str | None,
        Meta(
            description="IP address and port on which to answer POST /get-status like the older HTTP tool's "
            "node_info.py, such as 0.0.0.0:7080. Off by default: its password crosses the network in clear text.",
        ),
    ] = None
    node_info_password_file: Annotated[
        str | None,
        Meta(
            description="File with the password that POST /get-status must carry. Default: systemd's credential "
            "`gpuherd-node-password` if there is one.",
        ),
    ] = None
    node_info_networks: Annotated[
        tuple[str, ...],
        Meta(max_length=64, description="Networks that may ask for POST /get-status, with the password."),
    ] = LOOPBACK
    interval_seconds: Annotated[
        float, Meta(ge=0.1, le=3600, description="Time from one sample to the next, in seconds.")
    ] = 1.0
    collect_deadline_seconds: Annotated[
        float,
        Meta(
            ge=0.1,
            le=600,
            description="How long, in seconds, a single driver call may stand still before the driver is "
            "called hung and the probe replaced.",
        ),
    ] = 5.0
    state_dir: Annotated[
        str | None,
        Meta(
            description="Folder for credential, spool and the list of known devices. Default: systemd's "
            "STATE_DIRECTORY, else /var/lib/gpuherd/agent for root, else ~/.local/state/gpuherd/agent.",
        ),
    ] = None
    credential_file: Annotated[
        str | None,
        Meta(
            description="File with the node's credential. Default: `credential` in the state folder, "
            "where enrolment puts it.",
        ),
    ] = None
    join_token_file: Annotated[
        str | None,
        Meta(
            description="File with a join token, read once when there is no credential yet; `-` is standard input. "
            "Default: systemd's credential `gpuherd-join-token` if there is one.",
        ),
    ] = None
    node_name: Annotated[
        Label | None,
        Meta(
            description="Display name to ask for at enrolment; the hub may choose another. Default: the host name."
        ),
    ] = None
    spool_max_bytes: Annotated[
        int,
        Meta(
            ge=0,
            le=2**40,
            description="Disk space for what the hub has not confirmed, in bytes; beyond it the oldest is dropped "
            "and counted. 0 keeps everything in memory (8 MiB at most).",
        ),
    ] = 256 * 1024 * 1024
    collectors: Annotated[
        tuple[Label, ...],
        Meta(max_length=16, description="Ways to read GPUs, tried in this order; none reads the host only."),
    ] = ("nvml", "nvidia_smi", "amd_smi", "rocm_smi")
    pcie_throughput: Annotated[
        bool, Meta(description="Read PCIe traffic too; costs 20 to 40 ms per GPU and sample.")
    ] = False
    command_lines: Annotated[
        CommandLines,
        Meta(
            description="How much of a process's command line leaves the node: all of it with secrets "
            "removed, only the program's name, or nothing."
        ),
    ] = "full"
    tls_ca_file: Annotated[
        str | None,
        Meta(
            description="Certificates (PEM) to trust for an https hub instead of the system's own.",
        ),
    ] = None
