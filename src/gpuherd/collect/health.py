"""What a GPU's own health registers say, as problems: row remapping, page retirement, recovery action.

Each of them is a state, read again and again; the problem is gone when the state is.
"""

from __future__ import annotations

from gpuherd.model.devices import DeviceFacts
from gpuherd.model.reports import Problem

__all__ = ["recovery_problem", "remap_problems", "retirement_problems"]

_RESET = "stop its processes and run 'nvidia-smi --gpu-reset', or reboot"
_RECOVERY_ACTIONS = {
    1: f"a reset of the GPU: {_RESET}",
    2: "a reboot of the node",
    3: "no new work that uses NVLink: let running work finish, then reset the GPU",
    4: "no new work: let running work finish, then reset the GPU",
    5: "a recovery of the IMEX domain",
    6: "a reset of the PCIe bus: reboot the node",
    7: "a reboot of the whole system",
}
"""By the driver's number; 0 is none."""


_RECOVERY_WORDS = {
    "none": 0,
    "reset": 1,
    "gpu reset": 1,
    "reboot": 2,
    "node reboot": 2,
    "drain p2p": 3,
    "drain and reset": 4,
    "bus reset": 6,
    "system reboot": 7,
}
"""As nvidia-smi writes them."""


def recovery_problem(facts: DeviceFacts, action: int | str) -> list[Problem]:
    """Say what the driver asks for before the GPU is used again; nothing for 0 and "None"."""
    number = action if isinstance(action, int) else _RECOVERY_WORDS.get(action.lower(), -1)
    if not number:
        return []
    wanted = _RECOVERY_ACTIONS.get(number, f"recovery action {action}: see NVIDIA's documentation")
    return [_fault(facts, "recovery_action", f"the driver asks for {wanted}")]


def remap_problems(facts: DeviceFacts, *, is_pending: bool, has_failed: bool) -> list[Problem]:
    """Say that rows of the memory wait to be remapped, or could not be."""
    found = []
    if is_pending:
        found.append(_fault(facts, "remap_pending", f"memory rows are pending remapping: {_RESET}"))
    if has_failed:
        text = "memory rows could not be remapped: have the card replaced"
        found.append(_fault(facts, "remap_failed", text))
    return found


def retirement_problems(facts: DeviceFacts, *, is_pending: bool) -> list[Problem]:
    """Say that pages of the memory wait to be retired."""
    text = f"memory pages are pending retirement: {_RESET}"
    return [_fault(facts, "retirement_pending", text)] if is_pending else []


def _fault(facts: DeviceFacts, code: str, text: str) -> Problem:
    return Problem(code=code, message=f"GPU {facts.index}: {text}", device_uuid=facts.uuid, is_fault=True)
