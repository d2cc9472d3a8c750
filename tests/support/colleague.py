"""A colleague's Chromium, as a program of its own: opens an address, types what is to be typed, waits for words.

It runs where it is started, so also in another network, and Playwright's event loop stays out of the tests' process.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from support.chromium import CHROMIUM, FLAGS

__all__ = ["look"]

PATIENCE_MS = 120_000


def look(
    url: str,
    *words: str,
    prefix: Sequence[str] = (),
    typed: Mapping[str, str] | None = None,
    pressed: str | None = None,
    flags: Sequence[str] = (),
) -> str:
    """Look at a page until it shows all words; gives all of its text. ``prefix`` says where the browser runs."""
    if not CHROMIUM.exists():
        pytest.skip(f"{CHROMIUM} is missing: run scripts/provision")
    task = {"url": url, "typed": dict(typed or {}), "pressed": pressed, "words": words}
    browser = {"executable_path": str(CHROMIUM), "args": [*FLAGS, *flags]}
    done = subprocess.run(
        [*prefix, sys.executable, "-m", "support.colleague", json.dumps(browser), json.dumps(task)],
        cwd=Path(__file__).parents[1],
        capture_output=True,
        text=True,
        timeout=3 * PATIENCE_MS / 1000,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def _main() -> None:
    from playwright.sync_api import expect, sync_playwright

    launched, task = map(json.loads, sys.argv[1:])
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(**launched)
        page = browser.new_page(locale="en-US")
        page.set_default_timeout(PATIENCE_MS)
        page.goto(task["url"])
        for selector, text in task["typed"].items():
            page.fill(selector, text)
        if task["pressed"]:
            page.click(task["pressed"])
        for word in task["words"]:
            expect(page.locator("body")).to_contain_text(word, timeout=PATIENCE_MS)
        sys.stdout.write(page.inner_text("body"))
        browser.close()


if __name__ == "__main__":
    _main()
