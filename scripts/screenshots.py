"""Take a picture of every page in both themes, on a desk and on a phone: ``make screenshots``.

The herd is the demo's, which always is the same one; with libfaketime it also lives at the same time of the same day,
so that pictures of two versions differ only where the page does. Pictures go to build/screenshots/, and those of the
README and the documentation, with ``gpuherd top`` and a monthly report among them, to docs/images/.
"""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import secrets
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import termios
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any, Literal

from playwright.sync_api import BrowserContext, Page, sync_playwright

ROOT = Path(__file__).resolve().parents[1]
PICTURES = ROOT / "build" / "screenshots"
DOCS = ROOT / "docs" / "images"
CHROMIUM = shutil.which("chromium-headless-shell") or shutil.which("chromium")
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
]
FAKETIME = Path("/usr/lib") / f"{os.uname().machine}-linux-gnu" / "faketime" / "libfaketimeMT.so.1"
CLOCK = datetime(2026, 3, 2, 14, 0, tzinfo=UTC)
"""When the herd starts."""
STARTED = time.time()
START_SECONDS = 600
"""How long the demo may take to write its past."""
SETTLE_SECONDS = 75
"""Until then held and offline devices have become such, and the charts have something to show."""
THEMES: tuple[Literal["dark", "light"], ...] = ("dark", "light")
SIZES = {"desk": (1440, 900), "phone": (390, 844)}
NODE = "h100-02"
FOR_DOCS = {
    "herd-dark-desk": "page-dark",
    "node-light-desk": "node-light",
    "wall-dark-desk": "wall-dark",
    "timeline-dark-desk": "timeline-dark",
    "report": "report",
}
MONTH = f"{CLOCK:%Y}-{CLOCK.month - 1:02}"
TERMINAL = (132, 36)
"""Columns and lines."""
TOP_SECONDS = 45
"""Until then ``gpuherd top`` has drawn some of its last minutes."""
SHOWN_URL = "http://gpu.example.org"
"""As long as the hub's own address, whose port differs from run to run."""
FONT = 'ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace'
ADMIN = "admin"


def ask(url: str) -> Any:
    """GET; gives the JSON answer."""
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(url, timeout=10) as answer:
        return json.loads(answer.read())


def then() -> dict[str, str]:
    """Give the environment in which it is always the same day."""
    if not FAKETIME.exists():
        return dict(os.environ)
    # An offset and not a time to start at: all processes must have the same clock.
    offset = f"{int(CLOCK.timestamp() - STARTED):+d}"
    return {**os.environ, "LD_PRELOAD": str(FAKETIME), "FAKETIME": offset, "DONT_FAKE_MONOTONIC": "1"}


@contextmanager
def demo_herd() -> Iterator[tuple[str, str]]:
    """Run the demo on a port of its own; gives its address and set-up code once every state can be seen."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        listen = f"127.0.0.1:{probe.getsockname()[1]}"
    if not FAKETIME.exists():
        sys.stderr.write(
            f"{FAKETIME} is missing (apt-get install libfaketime): times differ from run to run\n"
        )
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "gpuherd", "demo", "--listen", listen],
            env=then(),
            stdout=log,
            stderr=log,
        )
        try:
            code = _setup_code(process, log)
            time.sleep(SETTLE_SECONDS)
            yield f"http://{listen}/", code
        finally:
            process.terminate()
            process.wait(30)


def _setup_code(process: subprocess.Popen[bytes], log: IO[bytes]) -> str:
    """Wait until the demo, which first writes its past, has printed the set-up link."""
    for _ in range(START_SECONDS):
        said = os.pread(log.fileno(), 1 << 20, 0)  # the demo writes at the file's own position
        if process.poll() is not None:
            raise SystemExit(f"the demo ended: {said.decode()}")
        code = re.search(rb"\?setup#(\S+)", said)
        if code is not None:
            return code[1].decode()
        time.sleep(1)
    raise SystemExit("the demo has printed no set-up link")


def places(url: str) -> dict[str, str]:
    """Name the pages, with what stands behind the hub's address."""
    node = next(entry for entry in ask(f"{url}api/v1/fleet")["nodes"] if entry["name"] == NODE)
    return {
        "herd": "",
        "search": "?q=free+a100",
        "by-user": "?group=user",
        "over-time": "?over-time",
        "users": "?users",
        "user": "?user=user03",
        "usage": "?usage",
        "node": f"?node={node['id']}",
        "gpu": f"?gpu={node['devices'][0]['facts']['uuid']}",
        "gpu-24h": f"?gpu={node['devices'][0]['facts']['uuid']}&range=24h",
        "wall": "?wall",
        "timeline": "?timeline",
        "timeline-search": "?timeline&q=h100",
        "bookings": "?bookings",
        "book": f"?timeline&book=node.{node['id']}",
        "account": "?account",
        "admin": "?admin",
    }


def set_up(context: BrowserContext, url: str, code: str, password: str) -> None:
    """Make an account, as whoever starts a hub does, and book something; the context stays logged in."""
    answer = context.request.post(
        f"{url}api/v1/setup", data={"code": code, "name": ADMIN, "password": password}
    )
    if not answer.ok:
        raise SystemExit(f"set-up failed: {answer.text()}")
    for what, end in (("2 x A100 80GB", "3d"), ("1 x L40S", "8h")):
        context.request.post(
            f"{url}api/v1/bookings",
            data={"any": what, "end": end, "zone": "Europe/Berlin", "title": "evaluation"},
        )


def log_in(context: BrowserContext, url: str, password: str) -> None:
    """Log in behind the page's back."""
    answer = context.request.post(f"{url}api/v1/session", data={"name": ADMIN, "password": password})
    if not answer.ok:
        raise SystemExit(f"login failed: {answer.text()}")


def take(page: Page, url: str, name: str, *, is_live: bool = True) -> None:
    """Open a page and keep its picture."""
    page.goto(url)
    if is_live:
        page.wait_for_selector('main[data-live="true"]', timeout=20_000)
    # Bars have settled and charts are drawn.
    page.wait_for_timeout(1500)
    page.screenshot(path=PICTURES / f"{name}.png")
    sys.stdout.write(f"{name}.png\n")


def take_top(url: str) -> None:
    """Keep a picture of ``gpuherd top``, as it is on a terminal of its own."""
    controller, terminal = pty.openpty()
    columns, lines = TERMINAL
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
    with tempfile.TemporaryDirectory() as folder:
        process = subprocess.Popen(
            [sys.executable, "-m", "gpuherd", "top", "--hub", url, "--theme", "dark"],
            env={
                **then(),
                "TERM": "xterm-256color",
                "COLORTERM": "truecolor",
                "TEXTUAL_SCREENSHOT": str(TOP_SECONDS),
                "TEXTUAL_SCREENSHOT_LOCATION": folder,
                "TEXTUAL_SCREENSHOT_FILENAME": "top.svg",
            },
            stdin=terminal,
            stdout=terminal,
            stderr=terminal,
            start_new_session=True,
        )
        os.close(terminal)
        try:
            while os.read(controller, 1 << 16):
                pass  # what it draws for nobody
        except OSError:
            pass  # it has left
        if process.wait(30) != 0:
            raise SystemExit(f"gpuherd top ended with {process.returncode}")
        picture = Path(folder, "top.svg").read_text()
    # Nothing is loaded from elsewhere, and names of classes are the same each time.
    picture = re.sub(r"@font-face \{.*?\}", "", picture, flags=re.DOTALL)
    picture = re.sub(r"font-family: Fira Code, monospace", f"font-family: {FONT}", picture)
    picture = re.sub(r"terminal-\d+-", "terminal-", picture)
    picture = re.sub(r"[ \t]+$", "", picture, flags=re.MULTILINE)
    picture = picture.replace(url.rstrip("/"), SHOWN_URL)
    (DOCS / "top.svg").write_text(picture)
    sys.stdout.write("top.svg\n")


def take_report(context: BrowserContext, url: str) -> None:
    """Keep a picture of the report of the month before."""
    answer = context.request.get(f"{url}api/v1/usage/months/{MONTH}?format=html&zone=Europe/Berlin")
    if not answer.ok:
        raise SystemExit(f"there is no report: {answer.text()}")
    page = context.new_page()
    page.set_content(answer.text())
    page.screenshot(path=PICTURES / "report.png")
    page.close()
    sys.stdout.write("report.png\n")


def main() -> None:
    """Take all pictures."""
    PICTURES.mkdir(parents=True, exist_ok=True)
    password = secrets.token_urlsafe(16)
    with (
        demo_herd() as (url, code),
        tempfile.TemporaryDirectory() as profile,
        sync_playwright() as playwright,
    ):
        browser = playwright.chromium.launch(
            executable_path=CHROMIUM, args=[*FLAGS, f"--disk-cache-dir={profile}"]
        )
        known = places(url)
        take_top(url)
        with browser.new_context(viewport={"width": 1000, "height": 900}, color_scheme="light") as context:
            set_up(context, url, code, password)
            take_report(context, url)
        for size, (width, height) in SIZES.items():
            for theme in THEMES:
                context = browser.new_context(
                    viewport={"width": width, "height": height},
                    device_scale_factor=1 if size == "desk" else 2,
                    color_scheme=theme,
                    locale="en-GB",
                    timezone_id="Europe/Berlin",
                    reduced_motion="reduce",
                )
                page = context.new_page()
                take(page, f"{url}?login", f"login-{theme}-{size}", is_live=False)
                log_in(context, url, password)
                for name, place in known.items():
                    take(page, url + place, f"{name}-{theme}-{size}")
                context.close()
        browser.close()
    for name, kept_as in FOR_DOCS.items():
        shutil.copyfile(PICTURES / f"{name}.png", DOCS / f"{kept_as}.png")


if __name__ == "__main__":
    main()
