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
        Meta(
            ge=1,
            le=86_400,
            description="How often to read the list again, in seconds. If the hub notices a change, it "
            "reads the list earlier.",
        ),
    ] = 30.0


class HostsFileSettings(_Found, frozen=True, kw_only=True, tag="hosts_file"):
    """A text file with one host per line."""

    file: Annotated[
        Path,
        Meta(
            description="The file, with lines host, host:port, [IPv6]:port, user@host or name=host; # starts a "
            "comment."
        ),
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
    service: Annotated[str | None, Meta(description="The service; not needed if the URL contains it.")] = None
    only_healthy: Annotated[
        bool, Meta(description="Use the health endpoint, and only instances that pass their checks.")
    ] = False
    tag_name: Annotated[str | None, Meta(description="Use only instances with this tag.")] = None
    datacenter: Annotated[str | None, Meta(description="Use another datacenter.")] = None
    token_file: Annotated[
        Path | None, Meta(description="File with the ACL token; read for each request.")
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
    all_nodes: Annotated[bool, Meta(description="Also list nodes without GPUs.")] = False
    command_folder: Annotated[Path | None, Meta(description="Folder of scontrol, if it is not in PATH.")] = (
        None
    )
    config_file: Annotated[Path | None, Meta(description="slurm.conf, if it is not in its usual place.")] = (
        None
    )
    deadline_seconds: Annotated[
        float,
        Meta(
            ge=1,
            le=300,
            description="Longest wait for the controller, in seconds; scontrol itself gives up after 10 s.",
        ),
    ] = 15.0


class SshConfigSettings(_Found, frozen=True, kw_only=True, tag="ssh_config"):
    """Hosts of an SSH client configuration."""

    file: Annotated[Path, Meta(description="The file.")] = Path("~/.ssh/config")
    patterns: Annotated[
        tuple[str, ...],
        Meta(min_length=1, description='Patterns of hosts, such as "gpu*"; "!gpu9" excludes one.'),
    ]


class AnsibleSettings(_Found, frozen=True, kw_only=True, tag="ansible"):
    """Groups of an Ansible inventory, INI or YAML."""

    file: Annotated[Path, Meta(description="The inventory file.")]
    groups: Annotated[
        tuple[str, ...], Meta(min_length=1, description="Groups, including their children.")
    ] = ("rpcservers",)


FindSettings = (
    HostsFileSettings
    | IniSettings
    | YamlSettings
    | ConsulSettings
    | SlurmSettings
    | SshConfigSettings
    | AnsibleSettings
)
