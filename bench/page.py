"""The page in Chromium, looking at 8,000 devices on 1,000 nodes that all change every second.

``python -m bench.page --minutes 10`` watches the heap for longer than ``python -m bench page`` does.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from playwright.sync_api import Browser, CDPSession, Page, sync_playwright

from bench.hub import hub_load
from bench.measure import Figure, median
from bench.servers import Server, enrol_many, playing, serving_hub

__all__ = ["measure_page"]

NODES = 1000
CHROMIUM = "/usr/bin/chromium"
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


def _heap_bytes(page: Page, session: CDPSession) -> int:
    """Give the heap that is left after collecting; the least of a few, as a message may be in hand at any moment."""
    used: list[int] = []
    for _ in range(HEAP_LOOKS):
        session.send("HeapProfiler.collectGarbage")
        used.append(session.send("Runtime.getHeapUsage")["usedSize"])
        page.wait_for_timeout(300)
    return min(used)


class _Received:
    """Counts what the page reads; the network carries less, as the stream is compressed."""

    def __init__(self, session: CDPSession) -> None:
        self.bytes = 0
        session.on("Network.dataReceived", self._count)
        session.send("Network.enable")

    def _count(self, event: dict[str, Any]) -> None:
        self.bytes += event["dataLength"]


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
            page.wait_for_timeout(WARM_SECONDS * 1000)
            tasks = _tasks(browser, page, TRACE_SECONDS)
            session = page.context.new_cdp_session(page)
            # The trace itself left things behind.
            page.wait_for_timeout(10_000)
            received, start = _Received(session), time.monotonic()
            heap = [_heap_bytes(page, session)]
            for _ in range(HEAP_SAMPLES):
                page.wait_for_timeout(minutes * 60_000 / HEAP_SAMPLES)
                heap.append(_heap_bytes(page, session))
            per_second = received.bytes / (time.monotonic() - start)
    return _figures(useful, tasks, heap, minutes, per_second, full)


def _figures(
    useful: list[float],
    tasks: Tasks,
    heap: list[int],
    minutes: float,
    per_second: float,
    full: int,
) -> list[Figure]:
    drift = heap[-1] / heap[0] - 1
    worst = max(abs(value / heap[0] - 1) for value in heap)
    return [
        Figure(
            id="page",
            what="main-thread task time per update, 8,000 devices on 1,000 nodes all changing each second",
            value=round(median(tasks.per_second), 1),
            unit="ms",
            goal="≤ 50 ms median",
            met=median(tasks.per_second) <= 50,
            note=f"{median(tasks.cpu_per_second):.0f} ms of CPU; worst second {max(tasks.per_second):.0f} ms; software "
            f"rendering, {TRACE_SECONDS} s traced",
        ),
        Figure(
            id="page",
            what="longest task after load",
            value=round(tasks.longest, 1),
            unit="ms",
            goal="none > 100 ms",
            met=tasks.long_count == 0,
            note=f"{tasks.long_count} longer than {LONG_TASK_MS} ms",
        ),
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
            note=f"furthest from the start {worst:.1%}",
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
