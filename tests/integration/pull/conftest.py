"""What these tests share: a scripted node, its probe spec and a way to break it."""

from __future__ import annotations

from support.scripted_node import fault, script, spec

__all__ = ["fault", "script", "spec"]
