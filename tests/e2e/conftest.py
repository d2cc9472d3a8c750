"""The page in Debian's Chromium, served by a real hub."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import ConsoleMessage, Page, expect

from e2e.hub_process import DemoProcess, HubProcess
from e2e.places import PATIENCE_MS
from support.chromium import CHROMIUM, FLAGS

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
PAGE = ROOT / "src" / "gpuherd" / "api" / "page" / "index.html"
AXE = ROOT / "web" / "node_modules" / "axe-core" / "axe.min.js"

# What holds at once on a quiet machine may take its time on a busy one.
expect.set_options(timeout=PATIENCE_MS)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run these tests last and skip them where they cannot run.

    Last, because Playwright keeps an event loop running in this thread once it has started, and no test after it
    could run one of its own.
    """
    ours = [item for item in items if item.path.is_relative_to(HERE)]
    items[:] = [item for item in items if item not in ours] + ours
    missing = None
    if not CHROMIUM.exists():
        missing = f"{CHROMIUM} is missing: apt-get install chromium-headless-shell"
    elif not PAGE.exists():
        missing = "the page is not built: pip install -e ."
    if missing:
        for item in ours:
            item.add_marker(pytest.mark.skip(reason=missing))


@pytest.fixture(scope="session")
def base_url() -> None:
    """Stand in for the plug-in's fixture, which pytest warns about and which is of no use here."""


@pytest.fixture(scope="session")
def browser_type_launch_args(browser_type_launch_args: dict[str, Any]) -> dict[str, Any]:
    return {**browser_type_launch_args, "executable_path": str(CHROMIUM), "args": [*FLAGS]}


@pytest.fixture(scope="session")
def browser_context_args(browser_context_args: dict[str, Any]) -> dict[str, Any]:
    return {**browser_context_args, "locale": "en-US", "viewport": {"width": 1280, "height": 900}}


class SpareHubs:
    """Hubs without nodes, of which the next one starts while a test runs with the one before."""

    def __init__(self, folders: pytest.TempPathFactory) -> None:
        self._folders = folders
        self._next: HubProcess | None = None

    def take(self) -> HubProcess:
        """Give a hub that answers and belongs to nobody else."""
        hub = self._next or self._launch()
        self._next = None
        hub.wait_until_it_answers()
        self._next = self._launch()
        return hub

    def stop(self) -> None:
        """End the one that nobody took."""
        if self._next is not None:
            self._next.kill()

    def _launch(self) -> HubProcess:
        hub = HubProcess(self._folders.mktemp("hub"))
        hub.launch()
        return hub


@pytest.fixture(scope="session")
def spare_hubs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SpareHubs]:
    spare = SpareHubs(tmp_path_factory)
    yield spare
    spare.stop()


@pytest.fixture
def hub(spare_hubs: SpareHubs) -> Iterator[HubProcess]:
    """Run a hub without nodes."""
    process = spare_hubs.take()
    yield process
    process.kill()


@pytest.fixture(scope="session")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DemoProcess]:
    """Run the demo herd, under a base path: one for all tests, which only look at it."""
    process = DemoProcess(tmp_path_factory.mktemp("demo"), nodes=24, base_path="/gpus/")
    process.start()
    yield process
    process.stop()


class Complaints:
    """What the browser objected to; a lost connection is only an objection where the test did not cause it."""

    def __init__(self) -> None:
        self.messages: list[str] = []
        self.may_lose_connection = False
        self.may_be_refused = False
        """Requests may be answered with an error; the browser calls every such answer one of the page."""

    def note(self, message: ConsoleMessage) -> None:
        if message.type not in ("error", "warning"):
            return
        lost = "Failed to load resource: net::ERR_" in message.text or "INCOMPLETE_CHUNKED" in message.text
        refused = "responded with a status of 4" in message.text
        if not ((lost and self.may_lose_connection) or (refused and self.may_be_refused)):
            self.messages.append(message.text)


@pytest.fixture(autouse=True)
def complaints(page: Page) -> Iterator[Complaints]:
    """Fail the test if the console shows an error, which is also where the browser tells a breach of the CSP."""
    found = Complaints()
    page.context.set_default_timeout(PATIENCE_MS)
    page.on("console", found.note)
    page.on("pageerror", lambda error: found.messages.append(str(error)))
    page.on("dialog", lambda dialog: found.messages.append(f"a dialog: {dialog.message}"))
    yield found
    assert found.messages == []
