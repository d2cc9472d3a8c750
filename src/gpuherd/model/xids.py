"""NVIDIA's Xid catalogue: what its driver complains about by number, and what NVIDIA says to do about it."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import NamedTuple

__all__ = ["XidEntry", "is_xid_fault", "xid_catalog"]

FAULT_ACTIONS = frozenset(
    {
        "RESET_GPU",
        "RESTART_BM",
        "RESTART_VM",
        "CHECK_MECHANICALS",
        # Codes with more than one cause. Their usual end is a reset, and the number alone does not rule it out.
        "WORKFLOW_XID_48",
        "WORKFLOW_NVLINK_ERR",
        "WORKFLOW_NVLINK5_ERR",
        # Listed for codes that are in use only where nothing else helps.
        "CONTACT_SUPPORT",
    }
)
"""Actions of the catalogue that are a reset, a reboot or worse: until then, the GPU is not free."""


class XidEntry(NamedTuple):
    """One line of the catalogue."""

    mnemonic: str
    action: str
    """NVIDIA's immediate action; empty: none is listed."""


@cache
def xid_catalog() -> dict[int, XidEntry]:
    """Read the catalogue, by number."""
    text = files("gpuherd.model").joinpath("xid_catalog.tsv").read_text()
    lines = [line.split("\t") for line in text.splitlines() if not line.startswith("#")]
    return {int(number): XidEntry(mnemonic, action.strip("-")) for number, mnemonic, action in lines[1:]}


def is_xid_fault(number: int) -> bool:
    """Whether a GPU must not be used after this Xid before it was reset, rebooted or repaired."""
    entry = xid_catalog().get(number)
    return entry is not None and entry.action in FAULT_ACTIONS
