"""The page in Chromium, looking at 8,000 devices on 1,000 nodes that all change every second.

``python -m bench.page --minutes 10`` watches the heap for longer than ``python -m bench page`` does.
"""

from __future__ import annotations

import argparse
import json
import shutil
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from playwright.sync_api import Browser, CDPSession, Page, sync_playwright

from bench.hub import hub_load
from bench.measure import Figure, median
from bench.servers import Server, enrol_many, playing, serving_hub

__all__ = ["measure_page"]

NODES = 1000
CHROMIUM = shutil.which("chromium") or "/usr/bin/chromium-headless-shell"
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
WARM_SECONDS = 20
TRACE_SECONDS = 30
HEAP_SAMPLES = 10
HEAP_LOOKS = 4
OPENINGS = 3
LONG_TASK_MS = 100
MIB = 2**20
_MAIN_THREAD = "CrRendererMain"
_TASKS = frozenset({"RunTask", "ThreadControllerImpl::RunTask"})
_NOTE_USEFUL = """
    addEventListener('DOMContentLoaded', () => {
        const look = () => {
            if (window.usefulAt || !document.querySelector('main[data-live="true"] [data-node]')) return;
            window.usefulAt = -1;
            // The frame that shows it, and the one after, which starts when it has been drawn.
            requestAnimationFrame(() => requestAnimationFrame(() => { window.usefulAt = performance.now(); }));
        };
        new MutationObserver(look).observe(document.body, {childList: true, subtree: true, attributes: true});
    });
"""


class Tasks(NamedTuple):
    """What the page's main thread did; milliseconds. The kernel's count leaves out waiting for a core."""

    per_second: list[float]
    cpu_per_second: list[float]
    longest: float
    long_count: int


@contextmanager
def _chromium() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS))
        try:
            yield browser
        finally:
            browser.close()


def _open(browser: Browser, server: Server) -> tuple[Page, float]:
    """Open the page in a fresh profile; gives it and the seconds until the herd could be read."""
    page = browser.new_context(viewport={"width": 1280, "height": 900}).new_page()
    page.add_init_script(_NOTE_USEFUL)
    page.goto(f"http://127.0.0.1:{server.port}/")
    page.wait_for_function("() => window.usefulAt > 0", timeout=60_000)
    return page, page.evaluate("() => window.usefulAt") / 1000


def _tasks(browser: Browser, page: Page, seconds: float) -> Tasks:
    """Trace the main thread; a tick comes every second, so a second of tasks is what an update costs."""
    browser.start_tracing(page=page, categories=["toplevel", "__metadata"])
    page.wait_for_timeout(seconds * 1000)
    events: list[dict[str, Any]] = json.loads(browser.stop_tracing())["traceEvents"]
    threads = {
        (event["pid"], event["tid"])
        for event in events
        if event["name"] == "thread_name" and event["args"]["name"] == _MAIN_THREAD
    }
    tasks = [
        (event["pid"], event["ts"], event["dur"] / 1000, event.get("tdur", 0) / 1000)
        for event in events
        if event["name"] in _TASKS and "dur" in event and (event["pid"], event["tid"]) in threads
    ]
    if not tasks:
        raise SystemExit("the trace shows no task of a page's main thread")
    # The page is the renderer that works; an empty one may stand by.
    totals: dict[int, float] = {}
    for pid, _, duration, _ in tasks:
        totals[pid] = totals.get(pid, 0.0) + duration
    busiest = max(totals, key=lambda pid: totals[pid])
    own = [(start, duration, cpu) for pid, start, duration, cpu in tasks if pid == busiest]
    begin = min(start for start, _, _ in own)
    wall, kernel = [0.0] * int(seconds), [0.0] * int(seconds)
    for start, duration, cpu in own:
        second = int((start - begin) / 1e6)
        if second < len(wall):
            wall[second] += duration
            kernel[second] += cpu
    durations = [duration for _, duration, _ in own]
    return Tasks(wall, kernel, max(durations), sum(duration > LONG_TASK_MS for duration in durations))


class _StreamReader:
    """The page's worker, which reads the stream; it is spoken to through the page.

    ``received`` counts the bytes it read. The network carries less, as the stream is compressed.
    """

    def __init__(self, page: Page, session: CDPSession) -> None:
        self.received = 0
        self._page = page
        self._session = session
        self._workers: list[str] = []
        self._answers: dict[int, dict[str, Any]] = {}
        self._asked = 0
        session.on("Target.attachedToTarget", lambda event: self._workers.append(event["sessionId"]))
        session.on("Target.receivedMessageFromTarget", self._hear)
        session.send(
            "Target.setAutoAttach", {"autoAttach": True, "waitForDebuggerOnStart": False, "flatten": False}
        )
        self._wait(lambda: bool(self._workers), "the page has no worker")
        self.ask("Network.enable")

    def ask(self, method: str) -> dict[str, Any]:
        """Give a command and its result."""
        self._asked += 1
        number = self._asked
        message = json.dumps({"id": number, "method": method})
        self._session.send("Target.sendMessageToTarget", {"sessionId": self._workers[0], "message": message})
        self._wait(lambda: number in self._answers, f"the page's worker does not answer {method}")
        return self._answers.pop(number)

    def _wait(self, is_done: Callable[[], bool], otherwise: str) -> None:
        deadline = time.monotonic() + 30
        while not is_done():
            if time.monotonic() > deadline:
                raise SystemExit(otherwise)
            self._page.wait_for_timeout(20)

    def _hear(self, event: dict[str, Any]) -> None:
        message = json.loads(event["message"])
        if "id" in message:
            self._answers[message["id"]] = message.get("result", {})
        elif message.get("method") == "Network.dataReceived":
            self.received += message["params"]["dataLength"]


def _heap_bytes(page: Page, session: CDPSession, reader: _StreamReader) -> int:
    """Give the heaps of page and worker after collecting; the least of a few, as a message may always be in hand."""
    used: list[int] = []
    for _ in range(HEAP_LOOKS):
        session.send("HeapProfiler.collectGarbage")
        reader.ask("HeapProfiler.collectGarbage")
        page_heap, worker_heap = session.send("Runtime.getHeapUsage"), reader.ask("Runtime.getHeapUsage")
        used.append(page_heap["usedSize"] + worker_heap["usedSize"])
        page.wait_for_timeout(300)
    return min(used)


def _full_state_bytes(server: Server) -> int:
    """Give the size of the stream's first message, which is everything."""
    request = urllib.request.Request(f"http://127.0.0.1:{server.port}/api/v1/stream")
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=30) as stream:
        for line in stream:
            if line.startswith(b"data: "):
                return len(line)
    raise SystemExit("the stream ended before its first message")


def measure_page(minutes: float = 2.0) -> list[Figure]:
    """Open the page a few times, trace it, then watch its heap and its share of the network."""
    with tempfile.TemporaryDirectory() as folder, _chromium() as browser:
        credentials = enrol_many(Path(folder), NODES)
        with serving_hub(Path(folder)) as hub, playing(hub_load(hub, credentials)):
            time.sleep(5)
            full = _full_state_bytes(hub)
            useful: list[float] = []
            for _ in range(OPENINGS):
                page, seconds = _open(browser, hub)
                useful.append(seconds)
                page.context.close()
            page, _ = _open(browser, hub)
            page.get_by_role("button", name="Expand all").click()
            # Nothing but lines of the list in sight.
            page.locator("[data-node]").first.evaluate(
                "node => scrollTo(0, scrollY + node.getBoundingClientRect().top + 300)"
            )
            page.wait_for_timeout(WARM_SECONDS * 1000)
            unfolded = _tasks(browser, page, TRACE_SECONDS)
            page.context.close()
            page, _ = _open(browser, hub)
            page.wait_for_timeout(WARM_SECONDS * 1000)
            tasks = _tasks(browser, page, TRACE_SECONDS)
            session = page.context.new_cdp_session(page)
            # The trace itself left things behind.
            page.wait_for_timeout(10_000)
            reader = _StreamReader(page, session)
            start = time.monotonic()
            heap = [_heap_bytes(page, session, reader)]
            for _ in range(HEAP_SAMPLES):
                page.wait_for_timeout(minutes * 60_000 / HEAP_SAMPLES)
                heap.append(_heap_bytes(page, session, reader))
            per_second = reader.received / (time.monotonic() - start)
    return [
        *_task_figures(tasks, "8,000 devices on 1,000 nodes all changing each second"),
        *_task_figures(unfolded, "the same with every node of the list unfolded"),
        *_other_figures(useful, heap, minutes, per_second, full),
    ]


def _task_figures(tasks: Tasks, what: str) -> list[Figure]:
    return [
        Figure(
            id="page",
            what=f"main-thread task time per update, {what}",
            value=round(median(tasks.per_second), 1),
            unit="ms",
            goal="≤ 50 ms median",
            met=median(tasks.per_second) <= 50,
            note=f"{median(tasks.cpu_per_second):.0f} ms of CPU; worst second {max(tasks.per_second):.0f} ms; software "
            f"rendering, {TRACE_SECONDS} s traced",
        ),
        Figure(
            id="page",
            what=f"longest task after load, {what}",
            value=round(tasks.longest, 1),
            unit="ms",
            goal="none > 100 ms",
            met=tasks.long_count == 0,
            note=f"{tasks.long_count} longer than {LONG_TASK_MS} ms",
        ),
    ]


def _other_figures(
    useful: list[float], heap: list[int], minutes: float, per_second: float, full: int
) -> list[Figure]:
    drift = heap[-1] / heap[0] - 1
    worst = max(abs(value / heap[0] - 1) for value in heap)
    return [
        Figure(
            id="page",
            what=f"heap after {minutes:g} minutes, garbage collected",
            value=round(heap[-1] / MIB, 1),
            unit="MiB",
            against="at their start",
            baseline=round(heap[0] / MIB, 1),
            ratio=round(1 + drift, 3),
            goal="flat ±10 %",
            met=worst <= 0.1,
            note=f"page and worker; furthest from the start {worst:.1%}",
        ),
        Figure(
            id="page",
            what="first useful paint on loopback",
            value=round(median(useful), 2),
            unit="s",
            goal="≤ 1.5 s",
            met=median(useful) <= 1.5,
            note=f"median of {len(useful)} openings with an empty cache, {min(useful):.2f} to {max(useful):.2f} s",
        ),
        Figure(
            id="page",
            what="bytes per second and viewer",
            value=round(per_second / 1000),
            unit="kB",
            against="sending the full state each second",
            baseline=round(full / 1000),
            ratio=round(per_second / full, 2),
            goal="≤ 0.4×",
            met=per_second / full <= 0.4,
            note="as the page reads them; the stream is compressed on its way",
        ),
    ]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0, help="how long to watch the heap")
    from bench.__main__ import table

    print(table(measure_page(parser.parse_args().minutes)))
