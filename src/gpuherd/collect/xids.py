"""What the driver's kernel part complains about, by number (Xid)."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["XIDS", "XidMeaning", "xid_message"]


class XidMeaning(NamedTuple):
    """What a number stands for. ``is_fault``: the GPU must not be used before a reset or repair."""

    text: str
    remedy: str
    is_fault: bool = False


_PROGRAM = "an error of the program that ran, most often; the GPU goes on"
_RESET = "stop its processes and reset the GPU"
_REBOOT = "reboot; if it comes back, have the card checked"

XIDS: dict[int, XidMeaning] = {
    13: XidMeaning("graphics engine exception", _PROGRAM),
    31: XidMeaning("memory page fault", _PROGRAM),
    32: XidMeaning("invalid or corrupted command stream", _PROGRAM),
    43: XidMeaning("the GPU stopped processing a program", _PROGRAM),
    45: XidMeaning("a program's work was removed after an earlier error", _PROGRAM),
    48: XidMeaning("double-bit ECC error", _RESET, is_fault=True),
    61: XidMeaning("internal micro-controller warning", "reset the GPU when convenient"),
    62: XidMeaning("internal micro-controller halt", _RESET, is_fault=True),
    63: XidMeaning("ECC page retirement or row remapping recorded", "reset the GPU when convenient"),
    64: XidMeaning("ECC page retirement or row remapping failed", _RESET, is_fault=True),
    68: XidMeaning("video processor exception", _PROGRAM),
    69: XidMeaning("graphics engine class error", _PROGRAM),
    74: XidMeaning("NVLink error", _RESET + "; if it comes back, check links and bridges", is_fault=True),
    79: XidMeaning("the GPU has fallen off the bus", _REBOOT, is_fault=True),
    92: XidMeaning("high rate of single-bit ECC errors", "watch it; have the card checked if it goes on"),
    94: XidMeaning("contained ECC error", "the program was ended; reset the GPU when convenient"),
    95: XidMeaning("uncontained ECC error", _RESET, is_fault=True),
    109: XidMeaning("context switch timeout", _PROGRAM),
    119: XidMeaning(
        "the GPU's system processor (GSP) does not answer", _RESET + ", or reboot", is_fault=True
    ),
    120: XidMeaning("error of the GPU's system processor (GSP)", _RESET + ", or reboot", is_fault=True),
    140: XidMeaning("unrecovered ECC error", _RESET, is_fault=True),
    143: XidMeaning("the GPU failed to initialise", _REBOOT, is_fault=True),
}
"""The common ones. Numbers not listed are shown without a meaning and are no fault."""


def xid_message(number: int) -> str:
    """Say in a sentence what an Xid is and what to do."""
    meaning = XIDS.get(number)
    if meaning is None:
        return f"Xid {number}: see NVIDIA's Xid catalogue for its meaning"
    return f"Xid {number}, {meaning.text}: {meaning.remedy}"
