"""Reports with holes filled: GPUs that are not read stay listed, with nothing known of what they do."""

from __future__ import annotations

import msgspec

from gpuherd.model.devices import DeviceFacts, DeviceSample
from gpuherd.model.reports import MAX_DEVICES, Problem, Report

__all__ = ["with_kept"]

_UNKNOWN = DeviceSample()


def with_kept(
    report: Report,
    kept: tuple[DeviceFacts, ...],
    remembered: tuple[DeviceFacts, ...],
    problems: tuple[Problem, ...],
) -> Report:
    """Add the devices in ``kept`` that the report lacks, and the problems.

    A report without any device that calls the whole node faulty gets all of ``remembered``: GPUs do not vanish
    from the list because the driver is gone. Nor do slices if nobody can say what is on their GPU.
    """
    report, known_again = _with_names(report, remembered)
    parents = known_again | _without_known_slices(report)
    kept += tuple(device for device in remembered if device.parent_uuid in parents)
    if problems:
        report = msgspec.structs.replace(
            report,
            sample=msgspec.structs.replace(report.sample, problems=problems + report.sample.problems),
        )
    if not report.facts.devices and any(
        problem.is_fault and problem.device_uuid is None for problem in report.sample.problems
    ):
        kept = remembered
    present = {device.uuid for device in report.facts.devices}
    missing = tuple(device for device in kept if device.uuid not in present)
    if not missing:
        return report
    return _merged(report, missing)


def _without_known_slices(report: Report) -> set[str]:
    """Give the GPUs without slices of which it is not known what runs on them: they may be split."""
    blind = {problem.device_uuid for problem in report.sample.problems if problem.code == "processes_failed"}
    split = {device.parent_uuid for device in report.facts.devices}
    return {
        device.uuid for device in report.facts.devices if device.uuid in blind and device.uuid not in split
    }


def _with_names(report: Report, remembered: tuple[DeviceFacts, ...]) -> tuple[Report, set[str]]:
    """Name GPUs that do not tell who they are as they were known at their place; gives the names too.

    Not if the number of GPUs has changed: then places may have moved.
    """
    nameless = [
        device for device in report.facts.devices if device.uuid == f"gpu-{device.index}-without-uuid"
    ]
    gpus = [device for device in remembered if device.kind == "gpu"]
    if not nameless or len(gpus) != sum(device.kind == "gpu" for device in report.facts.devices):
        return report, set()
    present = {device.uuid for device in report.facts.devices}
    at_place = {device.index: device for device in gpus if device.uuid not in present}
    names = {device.uuid: at_place[device.index] for device in nameless if device.index in at_place}
    if not names:
        return report, set()
    devices = tuple(names.get(device.uuid, device) for device in report.facts.devices)
    problems = tuple(
        msgspec.structs.replace(problem, device_uuid=names[problem.device_uuid].uuid)
        if problem.device_uuid in names
        else problem
        for problem in report.sample.problems
    )
    return msgspec.structs.replace(
        report,
        facts=msgspec.structs.replace(report.facts, devices=devices),
        sample=msgspec.structs.replace(report.sample, problems=problems),
    ), {device.uuid for device in names.values()}


def _merged(report: Report, missing: tuple[DeviceFacts, ...]) -> Report:
    index_of_gpu = {
        device.uuid: device.index for device in (*report.facts.devices, *missing) if device.kind == "gpu"
    }

    def rank(device: DeviceFacts) -> tuple[str, int, bool, int]:
        # A GPU goes to its index, its slices right after it.
        gpu_index = device.index if device.kind == "gpu" else index_of_gpu.get(device.parent_uuid or "", 4096)
        return (device.vendor, gpu_index, device.kind == "slice", device.index)

    rows = [
        (device, sample) for device, sample in zip(report.facts.devices, report.sample.devices, strict=True)
    ]
    added = [(device, _UNKNOWN) for device in missing]
    merged = sorted(rows + added, key=lambda row: rank(row[0]))[:MAX_DEVICES]
    position = {device.uuid: index for index, (device, _) in enumerate(merged)}
    moved = [position.get(device.uuid, 0) for device in report.facts.devices]
    return Report(
        facts=msgspec.structs.replace(report.facts, devices=tuple(device for device, _ in merged)),
        sample=msgspec.structs.replace(report.sample, devices=tuple(sample for _, sample in merged)),
        table=msgspec.structs.replace(
            report.table,
            uses=tuple(msgspec.structs.replace(use, device=moved[use.device]) for use in report.table.uses),
        ),
    )
