"""A report in the shape of the older HTTP tool's ``node_info.py``, for its main node and page."""

from __future__ import annotations

from typing import Any

from gpuherd.model.reports import Report

__all__ = ["node_info"]

MIB = 2**20


def node_info(report: Report, last_update: str) -> dict[str, Any]:
    """Give the answer to POST /get-status: memory in MiB, utilisation in percent; unknown is ``None``.

    ``last_update`` is ISO 8601 in local time without a zone, as the old tool writes it. The shape has no slices: their
    processes are listed on the GPU they are cut from.
    """
    devices = report.facts.devices
    gpus = [position for position, device in enumerate(devices) if device.kind == "gpu"]
    gpu_of_uuid = {devices[position].uuid: position for position in gpus}
    users: dict[int, list[dict[str, Any]]] = {position: [] for position in gpus}
    for use, sample in zip(report.table.uses, report.sample.uses, strict=True):
        device = devices[use.device]
        gpu = use.device if device.kind == "gpu" else gpu_of_uuid.get(device.parent_uuid or "")
        if gpu is not None:
            process = report.table.processes[use.process]
            users[gpu].append(
                {
                    "pid": process.pid,
                    "username": process.user,
                    "mem(MiB)": _mebibytes(sample.gpu_memory_bytes),
                    "command": process.command,
                }
            )
    return {
        "hostname": report.facts.host.hostname,
        "last_update": last_update,
        "ips": [
            [address.interface, address.ip]
            for address in report.facts.host.addresses
            if address.interface != "lo" and not address.interface.startswith("docker")
        ],
        "gpus": [
            {
                "index": devices[position].index,
                "name": devices[position].name,
                "use_mem": _mebibytes(report.sample.devices[position].memory_used_bytes),
                "tot_mem": _mebibytes(devices[position].memory_total_bytes),
                "utilize": _percent(report.sample.devices[position].utilization_gpu),
                "temp": _rounded(report.sample.devices[position].temperature_celsius),
                "users": users[position],
            }
            for position in gpus
        ],
    }


def _mebibytes(size_bytes: int | None) -> int | None:
    return None if size_bytes is None else round(size_bytes / MIB)


def _percent(ratio: float | None) -> int | None:
    return None if ratio is None else round(ratio * 100)


def _rounded(value: float | None) -> int | None:
    return None if value is None else round(value)
