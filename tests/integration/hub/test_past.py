"""A hub that remembers, asked over HTTP by everyone who may come."""

from __future__ import annotations

import asyncio
import re
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from gpuherd.api.hub import Hub
from gpuherd.history.batch import Batch, SeriesKey
from gpuherd.history.settings import HistorySettings, UsageSettings
from gpuherd.model.devices import DEVICE_STATES
from gpuherd.wiring.past import past_outfit
from support.hub import running_hub
from support.past import batch_of
from support.people import add_account, add_session, cookie, refresh
from support.reported_past import Slot, random_slots, uses_of
from support.running import PATIENCE_SECONDS

API = "api/v1/"
BUSY = DEVICE_STATES.index("busy")
DAYS = "from=5d"
SERIES = ["history/devices?device=n1:GPU-n1-0&from=1h", "history/nodes/n1?from=1h", "history/herd?from=1h"]
PEOPLES = ["history/users/bob?" + DAYS, "usage?" + DAYS, "usage/over-time?" + DAYS, "usage/trends?"]
PEOPLES += ["usage/sessions?" + DAYS, "usage?by=device&" + DAYS]
PICTURES = ["usage/hours?" + DAYS, "usage/distribution?" + DAYS]


def moved(slots: list[Slot], seconds: float) -> list[Slot]:
    """Give slots at another time."""
    step = int(seconds // 900 * 900)
    return [
        slot._replace(key=slot.key._replace(opened_at=slot.key.opened_at + step), slot=slot.slot + step)
        for slot in slots
    ]


@asynccontextmanager
async def remembering_hub(folder: Path, **settings: Any) -> AsyncIterator[Hub]:
    """Run a hub that remembers some days of people and an hour of a GPU."""
    past = past_outfit(HistorySettings(min_free_bytes=0), UsageSettings(cost_per_gpu_hour=2.0), folder)
    async with running_hub(folder, hub_options={"past": past}, **settings) as hub:
        now = hub.clock.wall()
        key, host = SeriesKey("n1", "GPU-n1-0", "A100 80GB"), SeriesKey("n1")
        rows = []
        for second in range(0, 3600, 20):
            rows.append((key, now - 3600 + second, {"utilization_gpu": 0.5}, BUSY))
            rows.append((host, now - 3600 + second, {"cpu_ratio": 0.5}, 255))
        batch: Batch = batch_of(rows, written_at=now)
        slots = moved(random_slots(1), now - 1_790_001_000.0 - 900.0)
        assert hub._remembering is not None
        historian = hub._remembering.library.historian
        await asyncio.to_thread(historian.append, replace(batch, uses=uses_of(slots), seen=(("n1", now),)))
        yield hub


Story = Callable[[Hub, aiohttp.ClientSession], Awaitable[None]]


def play(folder: Path, story: Story, **settings: Any) -> None:
    async def run() -> None:
        async with (
            remembering_hub(folder, **settings) as hub,
            aiohttp.ClientSession(hub.url) as http,
        ):
            await story(hub, http)

    asyncio.run(run())


def test_everyone_is_answered_in_every_form_and_the_public_without_names(tmp_path: Path) -> None:
    async def story(hub: Hub, http: aiohttp.ClientSession) -> None:
        member, admin = add_account(hub, "bob"), add_account(hub, "root", "admin")
        await refresh(hub)
        guests: dict[str, dict[str, str]] = {
            "public": {},
            "member": cookie(add_session(hub, member).secret),
            "admin": cookie(add_session(hub, admin).secret),
        }
        for guest, headers in guests.items():
            for path in (*SERIES, *PEOPLES, *PICTURES):
                for form in ("json", "csv"):
                    async with http.get(f"{API}{path}&format={form}", headers=headers) as response:
                        text = await response.text()
                        told = f"{guest} {path} {form}: {response.status} {text[:200]}"
                        assert response.status == 200, told
                        kind = "application/json" if form == "json" else "text/csv"
                        assert response.content_type == kind, told
                        attachment = response.headers.get("Content-Disposition", "")
                        assert attachment.startswith('attachment; filename="gpuherd-') is (form == "csv")
                        assert response.headers["Cache-Control"] == "private, no-store"
                        assert response.headers["X-Content-Type-Options"] == "nosniff"
                        if guest == "public":
                            # Ids are hexadecimal, and "ada" may be part of one.
                            assert not re.search(r"(?<![0-9a-f])ada(?![0-9a-f])", text), told
                            assert not any(name in text for name in ("mallory", "nightly", "train.py")), told
                            assert path.startswith("history/users") or "bob" not in text, told
                        elif path.startswith(("usage?from", "usage/sessions")):
                            assert "mallory" in text, told

    play(tmp_path, story, public="read")


def test_a_month_to_read_and_to_print(tmp_path: Path) -> None:
    async def story(hub: Hub, http: aiohttp.ClientSession) -> None:
        wanted = {"from": "5d", "user": "<script>alert(1)</script>"}
        async with http.get(API + "usage/sessions", params=wanted) as response:
            stay = (await response.json())["sessions"][0]
        month = time.strftime("%Y-%m", time.gmtime(stay["started_at"]))
        async with http.get(f"{API}usage/months/{month}?format=html&zone=UTC") as response:
            page = await response.text()
            assert response.content_type == "text/html"
            policy = response.headers["Content-Security-Policy"]
            assert policy.startswith("default-src 'none'")
            assert "sandbox" in policy
            assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
            assert "<script" not in page
        async with http.get(f"{API}usage/months/{month}?format=markdown") as response:
            assert response.content_type == "text/markdown"
            assert (await response.text()).startswith("# GPU usage in ")
        async with http.get(f"{API}usage/months/2999-01") as response:
            assert (response.status, (await response.json())["error"]["code"]) == (400, "bad_month")

    play(tmp_path, story)


@pytest.mark.parametrize(
    ("path", "status", "code"),
    [
        ("history/devices?from=1h", 400, "invalid_request"),
        ("history/devices?device=n1/7", 400, "bad_device"),
        ("history/devices?device=n1", 400, "bad_device"),
        ("history/devices?device=n9:GPU-9", 404, "unknown_device"),
        ("history/devices?device=n1:GPU-n1-0&metric=colour", 400, "unknown_metric"),
        ("history/devices?device=n1:GPU-n1-0&points=2001", 400, "invalid_request"),
        ("history/nodes/n9", 404, "unknown_node"),
        ("usage?from=soon", 400, "bad_range"),
        ("usage?from=2d&to=3d", 400, "bad_range"),
        ("usage?by=colour", 400, "invalid_request"),
        ("usage?limit=10001", 400, "invalid_request"),
        ("usage?format=xml", 400, "invalid_request"),
        ("usage/over-time?zone=Nowhere", 400, "unknown_zone"),
        ("usage/over-time?from=5y&step=hour", 400, "bad_range"),
        ("usage/sessions?limit=1001", 400, "invalid_request"),
        ("usage/months/october", 400, None),
    ],
)
def test_what_cannot_be_asked_is_refused_with_a_reason(
    hub_url: str, path: str, status: int, code: str | None
) -> None:
    async def ask() -> None:
        async with aiohttp.ClientSession(hub_url) as http, http.get(API + path) as response:
            error = (await response.json())["error"]
            assert response.status == status, error
            assert error["message"]
            assert code is None or error["code"] == code, error

    asyncio.run(ask())


@pytest.fixture(scope="module")
def hub_url(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """One hub for many questions, in a thread of its own."""
    started, stop, urls = threading.Event(), threading.Event(), list[str]()

    async def run() -> None:
        async with remembering_hub(tmp_path_factory.mktemp("hub")) as hub:
            urls.append(hub.url)
            started.set()
            await asyncio.to_thread(stop.wait)

    thread = threading.Thread(target=lambda: asyncio.run(run()))
    thread.start()
    assert started.wait(PATIENCE_SECONDS)
    yield urls[0]
    stop.set()
    thread.join(PATIENCE_SECONDS)


def test_ones_own_use_is_exported_and_forgotten_with_the_account(tmp_path: Path) -> None:
    async def story(hub: Hub, http: aiohttp.ClientSession) -> None:
        admin, bob = add_account(hub, "root", "admin"), add_account(hub, "bob")
        await refresh(hub)
        own, root = cookie(add_session(hub, bob).secret), cookie(add_session(hub, admin).secret)
        async with http.get(API + "account/export", headers=own) as response:
            exported = (await response.json())["usage"]
            assert exported
            assert {stay["user"] for stay in exported} == {"bob"}
        async with http.delete(f"{API}accounts/{admin.id}", headers=root) as response:
            assert (await response.json())["error"]["code"] == "last_admin"
        async with http.get(API + "usage?" + DAYS, headers=root) as response:
            before = await response.json()
            assert "bob" in {row["key"] for row in before["rows"]}
        async with http.delete(f"{API}accounts/{bob.id}", headers=root) as response:
            assert response.ok, await response.text()
        async with http.get(API + "usage?from=6d", headers=root) as response:
            after = await response.json()
            assert "bob" not in {row["key"] for row in after["rows"]}
            assert after["totals"]["gpu_hours"] == pytest.approx(before["totals"]["gpu_hours"])

    play(tmp_path, story)


def test_that_an_admin_read_command_lines_is_in_the_audit_log(tmp_path: Path) -> None:
    async def story(hub: Hub, http: aiohttp.ClientSession) -> None:
        root = cookie(add_session(hub, add_account(hub, "root", "admin")).secret)
        await refresh(hub)
        async with http.get(API + "usage/sessions?" + DAYS, headers=root) as response:
            assert response.ok
        async with asyncio.timeout(PATIENCE_SECONDS):
            while True:
                async with http.get(API + "audit?action=command_lines.read", headers=root) as response:
                    if "usage" in {entry["subject"] for entry in await response.json()}:
                        return
                await asyncio.sleep(0.05)

    play(tmp_path, story)


def test_a_hub_that_remembers_nothing_says_so(tmp_path: Path) -> None:
    async def story() -> None:
        async with running_hub(tmp_path) as hub, aiohttp.ClientSession(hub.url) as http:
            for path in (*SERIES, *PEOPLES, *PICTURES, "usage/months/2026-10?"):
                async with http.get(API + path) as response:
                    error = (await response.json())["error"]
                    assert (response.status, error["code"]) == (503, "history_off")
                    assert "history.enabled" in error["message"]

    asyncio.run(story())
