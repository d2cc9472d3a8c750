"""What ``node_info.py`` nodes answer to POST /get-status, as a report. Pure."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Struct

from gpuherd.model.devices import DeviceFacts, DeviceSample
from gpuherd.model.hosts import Address, HostFacts
from gpuherd.model.processes import Process, ProcessSample, UseSample
from gpuherd.model.reports import MAX_DEVICES, Problem, Report
from gpuherd.model.text import clean
from gpuherd.sources.assembly import Assembly, Scrub, command_line
from gpuherd.sources.following import ContactFailed
from gpuherd.sources.old_values import label, mebibytes, number, ratio, value_problems, whole

__all__ = ["NodeInfo", "read_answer"]

MAX_ADDRESSES = 64
MAX_USERS_OF_GPU = 1024


class NodeInfo(Struct, frozen=True, kw_only=True):
    """An answer: the report, and the node's own word for when its data was read."""

    report: Report
    last_update: str


def read_answer(body: bytes, *, name: str, node_id: str, wall: float, scrub: Scrub) -> NodeInfo:
    """Read the JSON of a 200 answer; ``ContactFailed`` says why it will not do.

    The tool tells neither UUIDs nor start times: a device's key is made of the node's id and its index.
    """
    answer = _decode(body, name)
    gpus = answer.get("gpus")
    if not isinstance(gpus, list):
        told = label(answer.get("message") or answer.get("error") or answer.get("msg"), 120)
        if told is not None:
            raise ContactFailed(
                "wrong_password",
                f'{name} refuses: "{told}"; put the PASSWD of its node_info.py into password_file',
                needs_person=True,
            )
        raise ContactFailed("garbled", f"{name} returns JSON without a list of gpus; is it node_info.py?")
    last_update = label(answer.get("last_update"))
    if last_update is None:
        raise ContactFailed(
            "no_data",
            f"{name} does not say when its data was read: its node_info.py has not read its GPUs yet",
        )
    assembly = Assembly()
    for place, gpu in enumerate(entry for entry in gpus[: MAX_DEVICES + 1] if isinstance(entry, dict)):
        _add_gpu(assembly, gpu, place, node_id, scrub)
    if gpus and not any(isinstance(gpu, dict) for gpu in gpus):
        raise ContactFailed("garbled", f"{name} returns an invalid list of gpus")
    host = HostFacts(hostname=label(answer.get("hostname")) or name, addresses=_addresses(answer.get("ips")))
    return NodeInfo(report=assembly.report(host, time=wall), last_update=last_update)


def _decode(body: bytes, name: str) -> dict[str, Any]:
    try:
        answer = msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise ContactFailed("garbled", f"{name} does not return JSON: {clean(str(error), 120)}") from error
    if not isinstance(answer, dict):
        raise ContactFailed("garbled", f"{name} returns JSON of another format; is it node_info.py?")
    return answer


def _addresses(ips: object) -> tuple[Address, ...]:
    pairs = ips[:MAX_ADDRESSES] if isinstance(ips, list) else []
    found = ((label(pair[0]), label(pair[1])) for pair in pairs if isinstance(pair, list) and len(pair) == 2)
    return tuple(Address(interface=interface, ip=ip) for interface, ip in found if interface and ip)


def _add_gpu(assembly: Assembly, gpu: dict[Any, Any], place: int, node_id: str, scrub: Scrub) -> None:
    found = whole(gpu.get("index"), 0, 4096)
    index = place if found is None else found
    uuid = clean(f"{node_id}-gpu{index}", 96)
    facts = DeviceFacts(
        uuid=uuid,
        index=index,
        name=label(gpu.get("name")) or "GPU",
        memory_total_bytes=mebibytes(gpu.get("tot_mem")) or None,
        memory_basis="framebuffer_with_reserved",
    )
    sample = DeviceSample(
        utilization_gpu=ratio(gpu.get("utilize")),
        memory_used_bytes=mebibytes(gpu.get("use_mem")),
        temperature_celsius=number(gpu.get("temp"), -60, 250),
    )
    metrics = [(field, gpu.get(field)) for field in ("use_mem", "tot_mem", "utilize", "temp")]
    device = assembly.add_device(facts, sample, value_problems(uuid, index, metrics, "utilize"))
    if device is None:
        return
    users = gpu.get("users")
    if not isinstance(users, list):
        message = f"the node does not list the processes of GPU {index}"
        assembly.add_problem(Problem(code="processes_failed", message=message, device_uuid=uuid))
        return
    for entry in users[:MAX_USERS_OF_GPU]:
        user = entry if isinstance(entry, dict) else {}
        pid = assembly.pid_of_use(device, user.get("pid"))
        if pid is not None:
            command = label(user.get("command"), 4096)
            assembly.add_use(
                device,
                Process(
                    pid=pid,
                    user=label(user.get("username")),
                    command=None if command is None else command_line(command.split(), scrub),
                ),
                ProcessSample(),
                UseSample(gpu_memory_bytes=mebibytes(user.get("mem(MiB)"))),
            )
