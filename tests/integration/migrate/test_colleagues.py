"""Every migration guide ends with the lines that open the page to colleagues, and they do."""

from __future__ import annotations

import asyncio
import re
import tomllib
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from gpuherd.wiring.config import read_config
from support.booking_hub import report_of
from support.herd import gpu
from support.hub import eventually, running_hub

GUIDES = Path(__file__).parents[3] / "docs" / "migrate"
NAMES = sorted(file.stem for file in GUIDES.glob("*.md") if file.stem != "README")


def last_lines(name: str) -> dict[str, Any]:
    """Give the ``[hub]`` table of a guide's last section."""
    section = (GUIDES / f"{name}.md").read_text().rpartition("\n## ")[2]
    assert section.startswith("Let colleagues see it\n")
    (block,) = re.findall(r"```toml\n(.*?)```", section, re.DOTALL)
    read_config(block, name).hub.check()
    return dict(tomllib.loads(block)["hub"])


@pytest.mark.parametrize("name", NAMES)
def test_each_guide_ends_with_the_three_lines(name: str) -> None:
    lines = last_lines(name)
    assert lines.keys() == {"listen", "public", "public_networks"}
    assert lines["listen"].startswith("0.0.0.0:")


def test_a_colleague_on_another_address_sees_names(tmp_path: Path) -> None:
    lines = last_lines(NAMES[0])

    async def story() -> None:
        # 127.0.0.2 stands for the colleague's machine, 127.0.0.3 for one in another network.
        async with running_hub(tmp_path, public=lines["public"], public_networks=("127.0.0.2",)) as hub:
            await hub.admit("n1")
            hub.accept_report("n1", report_of(gpu(0), users={0: "ada"}))
            await eventually(lambda: len(hub.fleet.users()) == 1)
            seen = {}
            for address in ("127.0.0.2", "127.0.0.3"):
                connector = aiohttp.TCPConnector(local_addr=(address, 0))
                async with aiohttp.ClientSession(hub.url, connector=connector) as http:
                    async with http.get("") as page:
                        assert page.status == 200
                    async with http.get("api/v1/session") as response:
                        seen[address] = (await response.json())["privacy"]
                    async with http.get("api/v1/users") as response:
                        shown = await response.json()
                        assert response.status == (200 if seen[address] else 401)
                    assert ("ada" in str(shown)) == (seen[address] == "names")
            assert seen == {"127.0.0.2": "names", "127.0.0.3": None}

    asyncio.run(story())
