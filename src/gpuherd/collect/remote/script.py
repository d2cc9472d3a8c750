"""The script that nodes without an agent run: the parts in ``parts/``, one after the other."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

__all__ = ["PARTS", "node_script"]

PARTS = ("begin", "commands", "nvidia", "amd", "processes", "host", "rounds")


@cache
def node_script() -> bytes:
    """Give the script with its first line, ``#!/bin/sh``: to be sent, or to be installed for a key of its own."""
    folder = files("gpuherd.collect.remote").joinpath("parts")
    return b"\n".join(folder.joinpath(f"{part}.sh").read_bytes() for part in PARTS)
