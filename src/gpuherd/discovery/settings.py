"""Where nodes are named: the ``find`` key of a ``[[nodes]]`` table, told apart by ``in``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from msgspec import Meta, Struct

__all__ = [
    "AnsibleSettings",
    "ConsulSettings",
    "FindSettings",
    "HostsFileSettings",
    "IniSettings",
    "SlurmSettings",
    "SshConfigSettings",
    "YamlSettings",
]


class _Found(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="in"):
    every_seconds: Annotated[
        float,
        Meta(ge=1, le=86_400, description="How often to look again, unless a change is noticed before."),
    ] = 30.0


class HostsFileSettings(_Found, frozen=True, kw_only=True, tag="hosts_file"):
    """A text file with one host a line."""

    file: Annotated[
        Path,
        Meta(description="The file. # begins a comment; host, host:port, [IPv6]:port, user@host, name=host."),
    ]


class IniSettings(_Found, frozen=True, kw_only=True, tag="ini"):
    """An INI file with [common] user, hosts, key_filename."""

    file: Annotated[Path, Meta(description="The file, such as config.ini.")]


class YamlSettings(_Found, frozen=True, kw_only=True, tag="yaml"):
    """A YAML file with rpc_port and hosts."""

    file: Annotated[Path, Meta(description="The file, such as config.yml.")]


class ConsulSettings(_Found, frozen=True, kw_only=True, tag="consul"):
    """A service in Consul."""

    url: Annotated[str, Meta(description="Consul's address, or a whole /v1/catalog/service/NAME address.")]
    service: Annotated[str | None, Meta(description="The service; not needed if the URL names it.")] = None
    only_healthy: Annotated[
        bool, Meta(description="Ask the health endpoint and take only instances that pass their checks.")
    ] = False
    tag_name: Annotated[str | None, Meta(description="Take only instances with this tag.")] = None
    datacenter: Annotated[str | None, Meta(description="Ask another datacenter.")] = None
    token_file: Annotated[
        Path | None, Meta(description="File with the ACL token; read anew for each question.")
    ] = None
    tls_ca_file: Annotated[
        Path | None, Meta(description="Certificates to trust instead of the system's own.")
    ] = None
    use_node_name: Annotated[
        bool, Meta(description="Reach hosts by their node name instead of their address.")
    ] = False
    use_service_port: Annotated[bool, Meta(description="Reach hosts at the port of the service.")] = False


class SlurmSettings(_Found, frozen=True, kw_only=True, tag="slurm"):
    """The nodes of a Slurm cluster that have GPUs."""

    partition: Annotated[str | None, Meta(description="Only nodes of this partition.")] = None
    all_nodes: Annotated[bool, Meta(description="Nodes without GPUs too.")] = False
    command_folder: Annotated[
        Path | None, Meta(description="Folder of scontrol, if it is not on the path.")
    ] = None
    config_file: Annotated[
        Path | None, Meta(description="slurm.conf, if it is not where Slurm looks for it.")
    ] = None
    deadline_seconds: Annotated[
        float,
        Meta(ge=1, le=300, description="Longest wait for the controller; scontrol itself gives up after 10."),
    ] = 15.0


class SshConfigSettings(_Found, frozen=True, kw_only=True, tag="ssh_config"):
    """Hosts of an SSH client configuration."""

    file: Annotated[Path, Meta(description="The file.")] = Path("~/.ssh/config")
    patterns: Annotated[
        tuple[str, ...],
        Meta(
            min_length=1, description='Hosts that match one of these, such as "gpu*"; "!gpu9" takes one out.'
        ),
    ]


class AnsibleSettings(_Found, frozen=True, kw_only=True, tag="ansible"):
    """Groups of an Ansible inventory, INI or YAML."""

    file: Annotated[Path, Meta(description="The inventory file.")]
    groups: Annotated[tuple[str, ...], Meta(min_length=1, description="Groups, with their children.")] = (
        "rpcservers",
    )


FindSettings = (
    HostsFileSettings
    | IniSettings
    | YamlSettings
    | ConsulSettings
    | SlurmSettings
    | SshConfigSettings
    | AnsibleSettings
)
