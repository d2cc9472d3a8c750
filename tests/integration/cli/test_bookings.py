"""gpuherd bookings and the bookings of gpuherd gpu at real terminals, narrow ones above all."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest

from gpuherd.cli.showing import plain_width
from support.booking_hub import booking_hub
from support.hub import eventually
from support.terminal import Terminal


@pytest.mark.parametrize("columns", [40, 80])
def test_bookings_at_a_narrow_terminal(tmp_path: Path, columns: int) -> None:
    async def look() -> None:
        async with booking_hub(tmp_path / "hub") as lab:
            ann, token = await lab.person("ann"), tmp_path / "token"
            token.write_text(ann.token or "")
            token.chmod(0o600)
            await ann.book(*(("n1", f"GPU-{index}") for index in (3, 1, 0)), end="2d", title="ablation " * 9)
            await eventually(
                lambda: bool(lab.hub.fleet.view().nodes[0].devices[0].availability.state == "booked")
            )

            def show(*arguments: str) -> list[str]:
                home = {"HOME": str(tmp_path), "GPUHERD_HUB": lab.hub.url, "NO_COLOR": "1"}
                command = (*arguments, "--token-file", str(token))
                code, shown = Terminal(*command, columns=columns, environment=home).end()
                assert code == 0, shown
                assert max(plain_width(line) for line in shown.splitlines()) <= columns, shown
                return shown.splitlines()

            header, line = await asyncio.to_thread(show, "bookings", "--all")
            assert (header.split()[0], "title" in header) == ("id", False)
            assert re.match(r"\d+ .* n1/0,1,3", line)
            lines = await asyncio.to_thread(show, "gpu", "n1/0")
            assert re.search(r"Ann .* booking \d+$", lines[-1])

    asyncio.run(look())
