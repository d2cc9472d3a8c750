"""Run the benchmarks: ``python -m bench [P1 P2 …]``. Prints a table; writes JSON and Markdown to bench/results/."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

import msgspec

from bench.agent import measure_p1
from bench.ansible import measure_ansible
from bench.booking_records import measure_booking_records
from bench.bookings import measure_bookings
from bench.cli import measure_cli
from bench.enrol import measure_enrol
from bench.export import measure_export
from bench.history import measure_history
from bench.hub import measure_p2, measure_p6
from bench.login import measure_login
from bench.measure import Figure
from bench.overload import measure_overload
from bench.page import measure_page
from bench.privacy import measure_privacy
from bench.pull import measure_pull
from bench.recovery import measure_recovery
from bench.ssh import measure_ssh
from bench.tending import measure_tending
from bench.top import measure_top
from bench.usage import measure_usage
from bench.viewers import measure_p4

MEASUREMENTS: dict[str, Callable[[], list[Figure]]] = {
    "P1": measure_p1,
    "P2": measure_p2,
    "P4": measure_p4,
    "P6": measure_p6,
    "ansible": measure_ansible,
    "bookings": measure_bookings,
    "cli": measure_cli,
    "enrol": measure_enrol,
    "export": measure_export,
    "history": measure_history,
    "login": measure_login,
    "booking-records": measure_booking_records,
    "overload": measure_overload,
    "page": measure_page,
    "privacy": measure_privacy,
    "pull": measure_pull,
    "recovery": measure_recovery,
    "ssh": measure_ssh,
    "tending": measure_tending,
    "top": measure_top,
    "usage": measure_usage,
}
RESULTS = Path(__file__).parent / "results"


def row(figure: Figure) -> str:
    """Write one line of the table."""
    met = {True: "met", False: "missed", None: ""}[figure.met]
    baseline = "" if figure.baseline is None else f"{figure.baseline:g} {figure.unit}"
    ratio = "" if figure.ratio is None else f"{figure.ratio:g}×"
    against = f"{figure.against}: {baseline}" if figure.against else ""
    note = f" ({figure.note})" if figure.note else ""
    return (
        f"| {figure.id} | {figure.what}{note} | {figure.value:g} {figure.unit} | {against} | {ratio} "
        f"| {figure.goal} | {met} |"
    )


def table(figures: list[Figure]) -> str:
    """Write the table with what it was measured on."""
    machine = f"{os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}"
    packages = ", ".join(f"{name} {version(name)}" for name in ("gpuherd", "granian", "msgspec", "numpy"))
    lines = [
        f"Measured {datetime.now(UTC):%Y-%m-%d} on {machine}; {packages}. GPUs and nodes are simulated.",
        "",
        "| | what | measured | against | ratio | goal | |",
        "|---|---|---|---|---|---|---|",
        *(row(figure) for figure in figures),
    ]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Measure what was asked for, or everything."""
    chosen = sys.argv[1:] or list(MEASUREMENTS)
    unknown = [name for name in chosen if name not in MEASUREMENTS]
    if unknown:
        raise SystemExit(f"no such measurement: {', '.join(unknown)}; there are {', '.join(MEASUREMENTS)}")
    figures: list[Figure] = []
    for name in chosen:
        print(f"measuring {name} …", file=sys.stderr, flush=True)
        figures += MEASUREMENTS[name]()
    text = table(figures)
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "results.json").write_bytes(msgspec.json.format(msgspec.json.encode(figures), indent=2))
    (RESULTS / "results.md").write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
