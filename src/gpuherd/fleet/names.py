"""Short names: the product name without the words that everyone leaves out when speaking."""

from __future__ import annotations

import re

from gpuherd.model.devices import DeviceFacts

__all__ = ["short_name"]

_MAKER = re.compile(
    r"\b(NVIDIA|AMD|Intel(\(R\))?|Corporation|Graphics Device|GeForce|Tesla|Quadro|Instinct|Radeon|Generation)\b",
    re.IGNORECASE,
)
_FORM = re.compile(r"[- ](SXM\d?|PCIE|PCIe|HBM\d\w?|OAM|NVL)(?=[- ]|$)", re.IGNORECASE)
_PROFILE = re.compile(r"\bMIG\b.*$")
_SEPARATORS = re.compile(r"[-\s]+(?=\d+ ?GB\b)|\s{2,}")


def short_name(facts: DeviceFacts) -> str:
    """Shorten ``NVIDIA A100-SXM4-80GB`` to ``A100 80GB``; a slice gets its profile behind it."""
    name = _PROFILE.sub("", facts.name)
    name = _FORM.sub(" ", _MAKER.sub(" ", name))
    name = _SEPARATORS.sub(" ", name).strip(" -") or facts.name
    return f"{name} {facts.profile}" if facts.profile else name
