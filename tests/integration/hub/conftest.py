"""What several tests of the hub use."""

from __future__ import annotations

from support.records import postgresql

__all__ = ["postgresql"]
