"""The script that nodes without an agent run."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

__all__ = ["node_script"]


@cache
def node_script() -> bytes:
    """Give the script with its first line, ``#!/bin/sh``: to be sent, or to be installed for a key of its own."""
    return files("gpuherd.collect.remote").joinpath("node.sh").read_bytes()
