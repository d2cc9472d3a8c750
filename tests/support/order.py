"""Run the tests in another order: ``pytest --shuffle SEED`` shuffles the files, and the tests within each file.

A seed gives the same order each time, in all processes of pytest-xdist, so that a failure can be repeated.
"""

from __future__ import annotations

import random

import pytest


def shuffle(items: list[pytest.Item], seed: str) -> None:
    """Shuffle in place; tests of one file stay together, so that they share servers as always."""
    files: dict[str, list[pytest.Item]] = {}
    for item in items:
        files.setdefault(item.nodeid.partition("::")[0], []).append(item)
    chance = random.Random(seed)  # noqa: S311
    names = sorted(files)
    chance.shuffle(names)
    items.clear()
    for name in names:
        chance.shuffle(files[name])
        items += files[name]
