"""What the driver's kernel part complains about, by number (Xid).

Numbers and actions are those of NVIDIA's Xid catalogue as of 2025-10-29
(https://docs.nvidia.com/deploy/xid-errors/analyzing-xid-catalog.html); the words are ours.
"""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["XIDS", "XidMeaning", "xid_message"]


class XidMeaning(NamedTuple):
    """What a number stands for. ``is_fault``: the GPU must not be used before a reset or repair."""

    text: str
    remedy: str
    is_fault: bool = False


_PROGRAM = "usually an error in the program; the GPU keeps working"
_RESET = "stop its processes and reset the GPU"
_REBOOT = "reboot; if it comes back, have the card checked"
_LINKS = _RESET + "; if it comes back, check links and bridges"
_WATCH = "nothing to do; have the card checked if it continues"


def _program(text: str) -> XidMeaning:
    return XidMeaning(text, _PROGRAM)


def _reset(text: str, remedy: str = _RESET) -> XidMeaning:
    return XidMeaning(text, remedy, is_fault=True)


XIDS: dict[int, XidMeaning] = {
    8: _program("the GPU stopped processing"),
    13: _program("graphics engine exception"),
    31: _program("memory page fault"),
    32: _program("invalid or corrupted command stream"),
    38: XidMeaning("firmware watchdog timeout", _WATCH),
    43: _program("the GPU stopped processing a program"),
    44: XidMeaning("graphics engine fault while programs were switched", _WATCH),
    45: _program("a program's work was removed after an earlier error"),
    46: _reset("the GPU stopped processing and does not respond"),
    48: _reset("double-bit ECC error"),
    54: _reset("auxiliary power is not connected", "check the card's power cables, then reboot"),
    61: XidMeaning("internal micro-controller warning", "reset the GPU when convenient"),
    62: _reset("internal micro-controller halt"),
    63: XidMeaning("ECC page retirement or row remapping recorded", "reset the GPU when convenient"),
    64: _reset("ECC page retirement or row remapping failed"),
    68: _program("video decoder exception"),
    69: _program("graphics engine class error"),
    74: _reset("NVLink error", _LINKS),
    79: _reset("the GPU has fallen off the bus", _REBOOT),
    92: XidMeaning("high rate of single-bit ECC errors", _WATCH),
    94: _program("contained ECC error; the program was ended"),
    95: _reset("uncontained ECC error"),
    109: _reset("context switch timeout"),
    110: _reset("security fault"),
    119: _reset("the GPU's system processor (GSP) does not respond", _RESET + ", or reboot"),
    120: _reset("error of the GPU's system processor (GSP)", _RESET + ", or reboot"),
    136: _reset("an NVLink could not be trained", _LINKS),
    140: _reset("unrecovered ECC error"),
    142: XidMeaning(
        "video encoder error", "contact NVIDIA support; until then, reset the GPU", is_fault=True
    ),
    143: _reset("the GPU failed to initialise", _REBOOT),
    144: _reset("NVLink 5 error (SAW)", _LINKS),
    145: _reset("NVLink 5 error (RLW)", _LINKS),
    146: _reset("NVLink 5 error (TLW)", _LINKS),
    147: _reset("NVLink 5 error (TREX)", _LINKS),
    148: _reset("NVLink 5 error (NVLPW_CTRL)", _LINKS),
    149: _reset("NVLink 5 error (NETIR)", _LINKS),
    150: _reset("NVLink 5 error (MSE)", _LINKS),
    151: _reset("key rotation failed", "restart the virtual machine"),
    154: XidMeaning("the driver's recovery action changed", "see the recovery action shown with this fault"),
    155: _reset("NVLink error found by software", _LINKS),
    156: _reset("a part of the GPU was retired"),
    158: _reset("fatal timeout"),
}
"""Those with a meaning of their own. Numbers not listed are shown without a meaning and are no fault."""


def xid_message(number: int) -> str:
    """Say in a sentence what an Xid is and what to do."""
    meaning = XIDS.get(number)
    if meaning is None:
        return f"Xid {number}: see NVIDIA's Xid catalogue for its meaning"
    return f"Xid {number}, {meaning.text}: {meaning.remedy}"
