"""How much longer than usual to try: ``make soak`` sets ``GPUHERD_SOAK``; tests that gain by it are marked ``soak``."""

from __future__ import annotations

import os

__all__ = ["SOAK"]

SOAK = int(os.environ.get("GPUHERD_SOAK", "1"))
"""1 in a usual run; multiply examples, steps or rounds by it."""
