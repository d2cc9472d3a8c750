"""Why a service did not start, out of what its log holds of the last start."""

from __future__ import annotations

import pytest

from gpuherd.wiring.installing.services import complaint

UNIT = "gpuherd-agent.service"
START = f"Starting {UNIT} - gpuherd agent: reports this machine's GPUs..."
ENDED = [
    f"{UNIT}: Main process exited, code=exited, status=1/FAILURE",
    f"{UNIT}: Failed with result 'exit-code'.",
    f"Failed to start {UNIT} - gpuherd agent: reports this machine's GPUs.",
    f"{UNIT}: Consumed 1.204s CPU time.",
]
OLD = [START, "2026-11-16 20:00:00,123 WARNING the disk is nearly full", "gpuherd: an old complaint", *ENDED]


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (
            ["2026-11-16 20:01:00,123 WARNING trying", "gpuherd: the secret cannot be read"],
            "the secret cannot be read",
        ),
        (["2026-11-16 20:01:00,123 WARNING no route", "2026-11-16 20:01:00,124 INFO waiting"], "no route"),
        (
            ["Traceback (most recent call last):", "ModuleNotFoundError: No module named 'numpy'"],
            "ModuleNotFoundError: No module named 'numpy'",
        ),
        (
            [f"{UNIT}: Failed at step EXEC spawning /opt/gpuherd/bin/gpuherd: No such file or directory"],
            f"{UNIT}: Failed at step EXEC spawning /opt/gpuherd/bin/gpuherd: No such file or directory",
        ),
        ([], ""),
    ],
)
def test_what_is_said_of_the_last_start(said: list[str], words: str) -> None:
    assert complaint([*OLD, START, *said, *ENDED]) == words
    assert complaint([*said, *ENDED]) == words, "also if its beginning is not in sight"


def test_an_empty_log_says_nothing() -> None:
    assert complaint([]) == complaint(["", " "]) == ""
