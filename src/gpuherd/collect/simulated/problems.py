"""How simulated trouble is told: the problem codes that the NVML collector uses."""

from __future__ import annotations

from gpuherd.collect.reading import CollectorFailed, failure_code
from gpuherd.collect.simulated.driver import DRIVER_GONE, GPU_IS_LOST, NO_PERMISSION, UNSUPPORTED, error_text
from gpuherd.model.devices import DeviceFacts
from gpuherd.model.reports import Problem
from gpuherd.model.text import clip

__all__ = [
    "device_problem",
    "driver_failed",
    "driver_message",
    "driver_problem",
    "failure_problem",
    "note_failure",
    "skipped_problem",
]

_REASONS = {4: "no_permission", 9: "no_driver", 18: "driver_mismatch"}
_DEVICE_PROBLEMS = {GPU_IS_LOST: "gpu_lost", 16: "reset_required"}


def driver_problem(status: int) -> str:
    """Give the code of a problem of the driver as a whole."""
    return _REASONS.get(status, "driver_failed")


def note_failure(
    failures: list[tuple[str, int]], function: str, status: int, may_lack: frozenset[int] = UNSUPPORTED
) -> None:
    """Keep a call that failed; one that the device may lack is none, a driver that is gone ends the read."""
    if status in DRIVER_GONE:
        raise driver_failed(status)
    if status not in may_lack:
        failures.append((function, status))


def driver_message(status: int) -> str:
    """Say that nothing works, and why."""
    return f"the simulated driver reports: {error_text(status)}; the scenario says so"


def driver_failed(status: int) -> CollectorFailed:
    """Make the error of a driver that stopped to work."""
    return CollectorFailed(driver_problem(status), driver_message(status))


def skipped_problem(facts: DeviceFacts) -> Problem:
    """Say that a GPU is left alone."""
    return Problem(
        code="driver_hung",
        message=f"GPU {facts.index} hung or crashed the driver and is no longer read: reset it or reboot",
        device_uuid=facts.uuid,
        is_fault=True,
    )


def device_problem(facts: DeviceFacts, status: int) -> Problem:
    """Say that a device as a whole cannot be used."""
    return Problem(
        code="no_permission" if status == NO_PERMISSION else _DEVICE_PROBLEMS.get(status, "gpu_error"),
        message=f"GPU {facts.index} responds with {error_text(status)}: reset it or reboot (simulated)",
        device_uuid=facts.uuid,
        is_fault=status != NO_PERMISSION,
    )


def failure_problem(
    facts: DeviceFacts, failures: list[tuple[str, int]], unknown: list[str], *, is_dead: bool
) -> Problem:
    """Sum up the calls about a device that failed, and the numbers that are unknown because of them."""
    serious = next((status for _, status in failures if status in _DEVICE_PROBLEMS), None)
    if serious is not None or is_dead:
        return device_problem(facts, failures[0][1] if serious is None else serious)
    named = ", ".join(f"{function}: {error_text(status)}" for function, status in failures[:4])
    return Problem(
        code=failure_code(function for function, _ in failures),
        message=clip(f"the driver fails to report {named} (simulated)", 512),
        device_uuid=facts.uuid,
        columns=tuple(dict.fromkeys(unknown)),
    )
