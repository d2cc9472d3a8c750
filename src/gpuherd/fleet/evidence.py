"""What a sample says of the hardware, and what it does not say: the evidence against *free*."""

from __future__ import annotations

from enum import IntEnum

import numpy as np

from gpuherd.fleet.rows import DEVICE_COLUMN, Array, Codes, Floats
from gpuherd.model.devices import HEALTH_CHECKS, DeviceFacts, DeviceSample, ThrottleReason

__all__ = ["HARDWARE_TEXTS", "Hardware", "hardware_faults", "not_checked"]


class Hardware(IntEnum):
    """What the numbers of a sample say against *free*, worst first; 0 is nothing."""

    FINE = 0
    ECC = 1
    POWER_BRAKE = 2
    THERMAL = 3
    SLOWDOWN = 4


SLOWED = Hardware.POWER_BRAKE
"""From here on the card works, only slowly: in use it is shown as in use."""

HARDWARE_TEXTS: dict[Hardware, str] = {
    Hardware.ECC: "uncorrected ECC errors: stop its processes and reset the GPU; if they come back, have it checked",
    Hardware.POWER_BRAKE: "power brake: the power supply slows the card down; check power supplies and cables",
    Hardware.THERMAL: "too hot: the hardware slows the card down; check fans and airflow",
    Hardware.SLOWDOWN: "hardware slowdown: too hot or too little power; check cooling and power supply",
}
_SLOWING = {
    # The one named last wins: a brake says more than the slowdown that comes with it.
    Hardware.SLOWDOWN: ThrottleReason.HARDWARE_SLOWDOWN,
    Hardware.THERMAL: ThrottleReason.HARDWARE_THERMAL,
    Hardware.POWER_BRAKE: ThrottleReason.POWER_BRAKE,
}
_THROTTLE = DEVICE_COLUMN["throttle_reasons"]
_ECC = DEVICE_COLUMN["ecc_uncorrected"]


def hardware_faults(values: Floats, ecc_baseline: Floats, parent: Array) -> Codes:
    """Give the ``Hardware`` of each row: its own, or that of the GPU which a slice is cut from.

    ``ecc_baseline``: how many uncorrected errors an admin has acknowledged.
    """
    found = np.zeros(len(values), np.uint8)
    bits = np.nan_to_num(values[:, _THROTTLE], nan=0.0).astype(np.int64)
    for fault, mask in _SLOWING.items():
        found[(bits & mask) != 0] = fault
    with np.errstate(invalid="ignore"):
        found[values[:, _ECC] > ecc_baseline] = Hardware.ECC
    slices = np.flatnonzero(parent >= 0)
    found[slices] = np.where(found[slices] == 0, found[parent[slices]], found[slices])
    return found


def not_checked(facts: DeviceFacts, sample: DeviceSample) -> tuple[str, ...]:
    """Name the signs of broken hardware that cannot be read; of a slice, its GPU tells."""
    if facts.kind == "slice":
        return ()
    checked = set(facts.health_checks)
    if sample.throttle_reasons is not None:
        checked.add("slowdown")  # of agents that do not list what they check
    if sample.ecc_uncorrected is not None:
        checked.add("ecc")
    return tuple(check for check in HEALTH_CHECKS if check not in checked)
