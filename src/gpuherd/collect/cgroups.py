"""Container and batch job of a process, from the path of its control group."""

from __future__ import annotations

import re

__all__ = ["container_of", "job_of"]

_SHORT = 12
"""Digits of a container id that are shown, as the container tools do."""

_ID = rb"([0-9a-f]{64}|[0-9a-f]{32})"
# Kubernetes first: its paths also name the container engine.
_CONTAINERS = (
    ("kubernetes", re.compile(rb"kubepods[^\n]{0,256}?(?:cri-containerd-|crio-|docker-|/)" + _ID)),
    ("docker", re.compile(rb"(?:/docker/|docker-)" + _ID)),
    ("podman", re.compile(rb"libpod-(?:payload-)?" + _ID)),
    ("containerd", re.compile(rb"(?:cri-containerd-|nerdctl-|containerd[/-])" + _ID)),
    ("crio", re.compile(rb"crio-" + _ID)),
    ("lxc", re.compile(rb"/lxc(?:\.payload[./]|/payload/|/)([\w.\-]{1,64})")),
    (
        "nspawn",
        re.compile(rb"/machine\.slice/(?:machine-|systemd-nspawn@)([\w.\-\\]{1,64}?)\.(?:scope|service)"),
    ),
    ("apptainer", re.compile(rb"/(?:apptainer|singularity)-(\d+)\.scope")),
)
_SLURM = re.compile(rb"/(?:slurm|slurmstepd|system\.slice)[^\n]{0,128}/job_(\d{1,20})(?:/|\n|\Z)")


def container_of(cgroup: bytes) -> str | None:
    """Name the container, such as ``docker:0123456789ab``; ``None`` outside of one."""
    for kind, pattern in _CONTAINERS:
        found = pattern.search(cgroup)
        if found:
            name = found[1].decode(errors="replace")
            return f"{kind}:{name[:_SHORT] if kind not in ('lxc', 'nspawn') else name}"
    return None


def job_of(cgroup: bytes) -> str | None:
    """Name the batch job, such as ``slurm:123``; ``None`` outside of one."""
    found = _SLURM.search(cgroup)
    return f"slurm:{found[1].decode()}" if found else None
