"""What a probe is to run: names and options only, so that the parent imports no collector."""

from __future__ import annotations

from importlib import import_module
from typing import Any, Protocol

from msgspec import Struct

from gpuherd.model.errors import Misconfigured
from gpuherd.model.reports import Report

__all__ = ["CollectorSpec", "NodeReader", "ProbeSpec", "resolve"]


class NodeReader(Protocol):
    """What a probe reads: everything of this node, GPU collectors included."""

    def read(self) -> Report:
        """Look once at everything; ``Failed`` when not even the host could be read."""

    def close(self) -> None:
        """Let go of everything; may be called twice."""


class CollectorSpec(Struct, frozen=True, kw_only=True):
    """A GPU collector by name: ``target`` ("module:Class") is called with ``progress=`` and the options."""

    name: str
    target: str
    options: dict[str, Any] = {}


class ProbeSpec(Struct, frozen=True, kw_only=True):
    """A node reader by name: ``node`` ("module:Class") is called with the collectors and the options.

    The collectors come in order of preference; with none the reader must still report the host.
    """

    node: str
    node_options: dict[str, Any] = {}
    collectors: tuple[CollectorSpec, ...] = ()


def resolve(target: str) -> Any:
    """Import ``module:attribute``; ``Misconfigured`` says what is wrong with the name."""
    module_name, _, attribute = target.partition(":")
    try:
        return getattr(import_module(module_name), attribute)
    except (ImportError, AttributeError, ValueError) as error:
        raise Misconfigured(
            f"{target!r} cannot be loaded: {error}; it must be an installed module and a class in it, such "
            "as 'package.module:Class'"
        ) from error
