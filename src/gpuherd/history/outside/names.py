"""How samples are called in other stores: ``gpuherd_device_power_watts{node_id=…, type=…, uuid=…}``."""

from __future__ import annotations

import re

from gpuherd.history.batch import SeriesKey

__all__ = ["DEVICE", "HOST", "STATE", "labels_of", "regex_of", "said", "string_of"]

DEVICE = "gpuherd_device"
HOST = "gpuherd_host"
STATE = "state"
"""As a metric: the position in DEVICE_STATES."""

_CONTROLS = re.compile(r"[\x00-\x1f\x7f%]")


def said(text: str) -> str:
    """Give a label's value on one line and in valid Unicode; different texts stay different.

    Ids from nodes have neither line ends nor other controls; if one has, it is written as in a URL.
    """
    if not text.isprintable() or "%" in text:
        text = _CONTROLS.sub(lambda found: f"%{ord(found[0]):02X}", text)
        text = text.encode("utf-8", "backslashreplace").decode("utf-8")
    return text


def labels_of(key: SeriesKey) -> tuple[tuple[str, str], ...]:
    """Give the labels of a subject, by name; without those that are empty, which are the same as none."""
    labels = (("node_id", said(key.node_id)), ("type", said(key.type)), ("uuid", said(key.uuid)))
    return tuple(label for label in labels if label[1])


def string_of(text: str) -> str:
    """Write a text in PromQL."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def regex_of(texts: set[str]) -> str:
    """Write a pattern in PromQL that matches just these."""
    return string_of("|".join(re.escape(text) for text in sorted(texts)))
