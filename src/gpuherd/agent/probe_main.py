"""Starts the probe: ``python -m gpuherd.agent.probe_main CHANNEL_FD MARKER_FD PARENT_PID``.

msgspec takes some of what is in ``typing`` from ``typing_extensions`` where that is installed; since Python 3.11 it is
the same, and costs every probe more than a megabyte. So it is out of sight while msgspec is loaded, and back then.
"""

from __future__ import annotations

import sys

if __name__ == "__main__":
    sys.modules["typing_extensions"] = None  # type: ignore[assignment]
    import msgspec as _  # noqa: F401

    del sys.modules["typing_extensions"]
    from gpuherd.agent.probe import main

    raise SystemExit(main(sys.argv))
