"""A comments.json beside a running hub: followed, and never followed into nonsense."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from gpuherd.api.booking_comments import STATE_NAME
from gpuherd.bookings.comments_settings import CommentsSettings
from gpuherd.bookings.settings import BookingSettings
from gpuherd.cli.group import group as _group
from support.booking_hub import BookingHub, booking_hub
from support.hub import eventually


@pytest.fixture(autouse=True)
def looks_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gpuherd.api.booking_comments.LOOK_SECONDS", 0.1)
    monkeypatch.setattr("gpuherd.api.booking_comments.AGAIN_SECONDS", 0.2)


def until(hours: float) -> str:
    return datetime.fromtimestamp(time.time() + hours * 3600, UTC).strftime("%Y-%m-%d %H:%M")


def entry(name: str, hours: float = 5, comment: str = "") -> dict[str, str]:
    return {"name": name, "date": until(hours), "comment": comment}


def options(**comments: Any) -> dict[str, Any]:
    return {"hub_options": {"bookings": BookingSettings(comments=CommentsSettings(**comments))}}


def write(file: Path, content: Any) -> None:
    fresh = file.with_suffix(".new")
    fresh.write_text(content if isinstance(content, str) else json.dumps(content))
    fresh.replace(file)


def held(lab: BookingHub) -> dict[str, str]:
    now = lab.hub.clock.wall()
    return {
        f"{device.node_id}/{device.uuid}": booking.owner_name
        for booking in lab.hub.bookings.memory.window
        if booking.starts_at <= now < booking.ends_at
        for device in booking.devices
    }


def trouble(lab: BookingHub) -> str:
    (loop,) = [loop for loop in lab.hub.health().loops if loop.name.startswith("take over")]
    return (loop.last_error or "") if loop.state == "failing" else ""


def holds(lab: BookingHub, expected: dict[str, str]) -> Callable[[], bool]:
    return lambda: held(lab) == expected


def test_a_watched_file(tmp_path: Path) -> None:
    file, state = tmp_path / "comments.json", tmp_path / "hub"

    async def go() -> None:
        write(file, {"n1": [entry("ann", comment="x"), entry("bob", hours=-1)], "n9": [entry("eve")]})
        async with booking_hub(state, **options(file=file, watch=True)) as lab:
            ann = await lab.person("ann")
            await eventually(holds(lab, {"n1/GPU-0": "Ann"}))
            codes = [notice["code"] for notice in (await ann.get("fleet"))["notices"]]
            assert "comments_not_taken" in codes

            write(file, {"n1": {"0": entry("ann", 9), "1": entry("bob")}})
            await eventually(holds(lab, {"n1/GPU-0": "Ann", "n1/GPU-1": "bob"}))

            for nonsense in ("", '{"n1": [{"na', "[]]"):  # half written, or emptied to be written anew
                write(file, nonsense)
                await eventually(lambda: trouble(lab))
                assert held(lab) == {"n1/GPU-0": "Ann", "n1/GPU-1": "bob"}
            file.unlink()
            await eventually(lambda: "no longer exists" in trouble(lab))
            assert len(held(lab)) == 2

            write(file, {"n1": [entry("ann", 9), entry("bob")]})
            await eventually(lambda: not trouble(lab))
            write(file, {"n1": {"1": entry("bob")}})
            await eventually(holds(lab, {"n1/GPU-1": "bob"}))
        revision = lab_revision(state)
        async with booking_hub(state, **options(file=file, watch=True)) as lab:
            await eventually(lambda: any(loop.rounds > 2 for loop in loops(lab)))
            assert held(lab) == {"n1/GPU-1": "bob"}
            assert lab.hub.records.bookings.revision() == revision

    asyncio.run(go())


def loops(lab: BookingHub) -> list[Any]:
    return [loop for loop in lab.hub.health().loops if loop.name.startswith("take over")]


def lab_revision(state: Path) -> int:
    from gpuherd.records.bookings import BookingRecords
    from gpuherd.records.database import open_records

    assert (state / STATE_NAME).stat().st_mode & 0o077 == 0
    records = BookingRecords(open_records(state / "records.sqlite"))
    try:
        return records.revision()
    finally:
        records.close()


def test_a_file_that_is_read_once_ends_nothing(tmp_path: Path) -> None:
    file = tmp_path / "comments.json"

    async def go() -> None:
        write(file, {"n1": [entry("ann")]})
        async with booking_hub(tmp_path / "hub", **options(file=file)) as lab:
            await eventually(holds(lab, {"n1/GPU-0": "ann"}))
        write(file, {})
        async with booking_hub(tmp_path / "hub", **options(file=file)) as lab:
            await eventually(lambda: any(loop.rounds > 2 for loop in loops(lab)))
            assert held(lab) == {"n1/GPU-0": "ann"}

    asyncio.run(go())


def test_a_file_is_kept_up_to_date(tmp_path: Path) -> None:
    file = tmp_path / "public" / "comments.json"
    file.parent.mkdir()

    async def go() -> None:
        async with booking_hub(tmp_path / "hub", **options(export=file)) as lab:
            ann = await lab.person("ann")
            await eventually(file.exists)
            await eventually(lambda: json.loads(file.read_bytes()) == {"n1": [], "n2": []})
            await ann.book(("n1", "GPU-1"), title="training", end="3h")

            def told() -> list[dict[str, str]]:
                return list(json.loads(file.read_bytes())["n1"])

            await eventually(lambda: len(told()) == 2)
            assert told()[0] == {"name": "", "date": "", "comment": ""}
            assert (told()[1]["name"], told()[1]["comment"]) == ("Ann", "training")
        assert file.stat().st_mode & 0o777 == 0o644
        assert [other.name for other in file.parent.iterdir()] == ["comments.json"]

    asyncio.run(go())


def test_once_from_the_command_line(tmp_path: Path) -> None:
    file, state = tmp_path / "comments.json", tmp_path / "hub"

    def gpuherd(*arguments: str) -> Result:
        return CliRunner().invoke(_group, ["hub", "--state-dir", str(state), *arguments])

    async def go() -> None:
        content = {"n1": [entry("ann", comment="x"), entry("bob", hours=-1)], "n2": {"7": entry("eve")}}
        write(file, content)
        async with booking_hub(state) as lab:
            await lab.person("ann")
            await eventually((state / "state.sqlite").exists)
            await lab.hub._flush_at_end()
            tried = await asyncio.to_thread(gpuherd, "import-comments", str(file), "--dry-run")
            assert (tried.exit_code, tried.stdout) == (1, "would book n1/0 for ann\n")
            assert "not imported: line 1: n2:7: this node has no GPU with that index" in tried.stderr
            first = await asyncio.to_thread(gpuherd, "import-comments", str(file))
            assert first.stdout.splitlines()[-1] == "1 bookings made, 0 changed"
            again = await asyncio.to_thread(gpuherd, "import-comments", str(file))
            assert again.stdout == "0 bookings made, 0 changed\n"
            await eventually(holds(lab, {"n1/GPU-0": "Ann"}))
        written = gpuherd("export-comments", str(tmp_path / "out.json"))
        assert written.exit_code == 0, written
        told = json.loads((tmp_path / "out.json").read_bytes())
        assert told == {"n1": [{**content["n1"][0], "name": "Ann"}], "n2": []}  # type: ignore[index]
        assert json.loads(gpuherd("export-comments", "-").stdout) == told

    asyncio.run(go())
