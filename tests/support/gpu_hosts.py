"""Hosts to be asked over SSH: real sshds at many loopback addresses, each address with GPUs of its own.

``nvidia-smi`` there is a script that finds out by which address it was reached, and answers any query, with or without
header and units, out of files that the test writes.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from support.running import free_port
from support.sshd import Sshd, make_key, public_line

ADDRESSES_PER_SERVER = 16
"""More sockets than this no sshd opens."""
FIELDS = (
    "index", "uuid", "name", "pci.bus_id", "driver_version", "mig.mode.current", "memory.total", "memory.used",
    "utilization.gpu", "utilization.memory", "temperature.gpu", "power.draw",
)  # fmt: skip

NVIDIA_SMI = r"""#!/bin/sh
set -f
here=@FOLDER@/hosts/$(echo "$SSH_CONNECTION" | cut -d' ' -f3)
[ ! -f "$here/delay" ] || sleep "$(cat "$here/delay")"
case $1 in
--help-query-gpu) cat @FOLDER@/help; exit ;;
--query-gpu=*) rows=gpus ;;
--query-compute-apps=*) rows=apps ;;
*) exit 0 ;;
esac
exec awk -v rows=$rows -v asked="${1#*=}" -v format="$2" '
BEGIN {
    n = split(asked, fields, ",")
    plain = index(format, "nounits")
    for (i = 1; i <= n; i++) {
        f = fields[i]
        sub("^gpu_name$", "name", f)
        if (rows == "gpus") sub("^gpu_uuid$", "uuid", f)
        sub("^used_gpu_memory$", "used_memory", f)
        unit[i] = plain ? "" : (f ~ /utilization/ ? " %" : f ~ /memory/ ? " MiB" : "")
        fields[i] = f
        head = head (i > 1 ? ", " : "") f (f ~ /utilization/ ? " [%]" : "")
    }
    if (!index(format, "noheader")) print head
}
{
    m = split($0, pairs, ";")
    split("", value)
    for (i = 1; i <= m; i++) {
        at = index(pairs[i], "=")
        value[substr(pairs[i], 1, at - 1)] = substr(pairs[i], at + 1)
    }
    line = ""
    for (i = 1; i <= n; i++) {
        v = fields[i] in value ? value[fields[i]] unit[i] : "[N/A]"
        line = line (i > 1 ? ", " : "") v
    }
    print line
}' "$here/$rows"
"""


class GpuHosts:
    """The hosts, a key that opens them, and a home folder that knows their host keys."""

    def __init__(self, folder: Path, addresses: Sequence[str]) -> None:
        self.folder = folder
        self.port = free_port()
        programs = folder / "bin"
        programs.mkdir(parents=True)
        (folder / "help").write_text("".join(f'"{field}"\nwhat it is\n\n' for field in FIELDS))
        program = programs / "nvidia-smi"
        program.write_text(NVIDIA_SMI.replace("@FOLDER@", str(folder)))
        program.chmod(0o755)
        for address in addresses:
            (folder / "hosts" / address).mkdir(parents=True)
            for name in ("gpus", "apps"):
                (folder / "hosts" / address / name).touch()
        self.key = make_key(folder / "id_ed25519")
        host_key = make_key(folder / "host_key")
        self.servers: list[Sshd] = []
        for first in range(0, len(addresses), ADDRESSES_PER_SERVER):
            place = folder / f"sshd-{first}"
            place.mkdir()
            for name in (host_key.name, f"{host_key.name}.pub"):
                shutil.copy(folder / name, place / name)
            at = "\nListenAddress ".join(addresses[first : first + ADDRESSES_PER_SERVER])
            path = f"{programs}:{os.environ['PATH']}"
            options = {
                "SetEnv": f"HOME=/nonexistent PATH={path}",
                "ListenAddress": at,
                "Port": str(self.port),
            }
            server = Sshd(place, options)
            server.port = self.port
            server.authorize(self.key)
            self.servers.append(server)
        self.home = folder / "home"
        (self.home / ".ssh").mkdir(parents=True)
        kind, key = public_line(host_key).split()[:2]
        self.known_hosts = self.home / ".ssh" / "known_hosts"
        self.known_hosts.write_text(
            "".join(f"[{address}]:{self.port} {kind} {key}\n" for address in addresses)
        )

    def delay(self, address: str, seconds: float) -> None:
        """Let every nvidia-smi of a host take this long."""
        (self.folder / "hosts" / address / "delay").write_text(f"{seconds}\n")

    def forget_key(self, address: str) -> None:
        """Make a host's key unknown."""
        lines = self.known_hosts.read_text().splitlines(keepends=True)
        self.known_hosts.write_text("".join(line for line in lines if f"[{address}]" not in line))

    def gpu(self, address: str, index: int, **values: str | int) -> str:
        """Put a GPU into a host; gives its uuid. ``utilization_gpu=97`` stands for ``utilization.gpu``."""
        uuid = f"GPU-{address}-{index}"
        known: dict[str, str | int] = {
            "index": index,
            "uuid": uuid,
            "name": "NVIDIA A100-SXM4-80GB",
            "pci.bus_id": f"00000000:{index + 1:02X}:00.0",
            "driver_version": "550.54.15",
            "memory.total": 81920,
            "memory.used": 100,
            "utilization.gpu": 0,
            "utilization.memory": 0,
        }
        known.update({name.replace("_", "."): value for name, value in values.items()})
        self._append(address, "gpus", known)
        return uuid

    def process(self, address: str, uuid: str, pid: int, memory_mib: int = 1000) -> None:
        """Let a process compute on a GPU."""
        self._append(address, "apps", {"gpu_uuid": uuid, "pid": pid, "used_memory": memory_mib})

    def _append(self, address: str, name: str, values: dict[str, str | int]) -> None:
        with (self.folder / "hosts" / address / name).open("a") as file:
            file.write(";".join(f"{key}={value}" for key, value in values.items()) + "\n")

    def write_ini(self, *addresses: str) -> Path:
        """Write the older tool's configuration."""
        file = self.folder / "config.ini"
        hosts = [address if ":" in address else f"{address}:{self.port}" for address in addresses]
        file.write_text(f"[common]\nuser = root\nhosts = {','.join(hosts)}\nkey_filename={self.key.name}\n")
        return file

    @property
    def environment(self) -> dict[str, str]:
        """What a command of gpuherd is run with."""
        return {
            **os.environ,
            "HOME": str(self.home),
            "XDG_CONFIG_HOME": str(self.home / ".config"),
            "XDG_STATE_HOME": str(self.home / ".local"),
        }


@contextmanager
def gpu_hosts(folder: Path, *addresses: str) -> Iterator[GpuHosts]:
    """Run hosts for the length of a test."""
    hosts = GpuHosts(folder, addresses)
    try:
        for server in hosts.servers:
            server.start()
        yield hosts
    finally:
        for server in hosts.servers:
            server.remove()
