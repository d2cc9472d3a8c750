"""Any node of the herd in the shape of ``gpustat --json``, as an older tool's page reads it. Pure."""

from __future__ import annotations

from typing import Any

from gpuherd.api.legacy.whole_gpus import WholeGpu, local_time, mebibytes, percent, rounded, whole_gpus
from gpuherd.fleet.views import NodeView, ProcessView

__all__ = ["gpustat_payload", "mapped_ip"]


def mapped_ip(ip: str) -> str:
    """Write an IPv4 address as the old backend saw it; its page cuts the first seven characters off."""
    return ip if ":" in ip or not ip else f"::ffff:{ip}"


def gpustat_payload(node: NodeView) -> dict[str, Any] | None:
    """Give a node's payload, or none while nothing is known of it.

    ``query_time`` stands still while the node is silent: by that the old page marks it.
    """
    if node.host is None or node.received_at is None:
        return None
    addresses = [a.ip for a in node.host.addresses if a.interface != "lo" and ":" not in a.ip]
    return {
        "hostname": node.name,
        "driver_version": node.host.driver_version,
        "query_time": local_time(node.received_at),
        "gpus": [_gpu(gpu) for gpu in whole_gpus(node)],
        "ip": mapped_ip(addresses[0] if addresses else ""),
    }


def _gpu(gpu: WholeGpu) -> dict[str, Any]:
    facts, sample = gpu.device.facts, gpu.device.sample
    return {
        "index": facts.index,
        "uuid": facts.uuid,
        "name": facts.name,
        "temperature.gpu": rounded(sample.temperature_celsius),
        "fan.speed": percent(sample.fan_ratio),
        "utilization.gpu": percent(sample.utilization_gpu),
        "utilization.enc": percent(sample.utilization_encoder),
        "utilization.dec": percent(sample.utilization_decoder),
        "power.draw": rounded(sample.power_watts),
        "enforced.power.limit": rounded(sample.power_limit_watts),
        "memory.used": mebibytes(sample.memory_used_bytes),
        "memory.total": mebibytes(facts.memory_total_bytes),
        "processes": [_process(process) for process in gpu.processes],
    }


def _process(process: ProcessView) -> dict[str, Any]:
    words = (process.command or "?").split()
    return {
        "username": process.user or "?",
        "command": words[0].rpartition("/")[2] if words else "?",
        "full_command": words,
        "gpu_memory_usage": mebibytes(process.gpu_memory_bytes),
        "cpu_percent": None if process.cpu_cores is None else round(process.cpu_cores * 100, 1),
        "cpu_memory_usage": process.memory_bytes,
        "pid": process.pid,
    }
