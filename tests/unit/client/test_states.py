"""States as they are told: signs that differ, in the model's order, and nothing that looks free but is not."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from gpuherd.client.states import PLAIN_SIGNS, SIGNS, STATES, sign_of, state_rank, state_word
from gpuherd.model.devices import DEVICE_STATES


def test_every_state_has_a_sign_of_its_own() -> None:
    assert STATES == DEVICE_STATES
    assert set(SIGNS) == set(PLAIN_SIGNS) == {*STATES, "live", "never"}
    for is_plain in (True, False):
        signs = [sign_of(state, is_plain=is_plain) for state in STATES if state != "offline"]
        assert len(set(signs)) == len(signs)
        assert all(len(sign) == 1 and sign.isascii() is is_plain for sign in signs if sign != "?")


def test_the_words_are_those_of_the_glossary() -> None:
    told = (Path(__file__).parents[3] / "docs/glossary.md").read_text().split("## States of a device")[1]
    words = re.findall(r"^\| \*\*(.+?)\*\*", told.split("\n## ")[0], re.MULTILINE)
    assert [state_word(state) for state in STATES] == words


def test_states_of_a_newer_hub_come_last_and_look_unknown() -> None:
    assert sorted(["zzz", "unknown", "asleep", "busy", "free"], key=state_rank) == [
        "free",
        "busy",
        "unknown",
        "asleep",
        "zzz",
    ]
    assert sign_of("asleep") == sign_of("unknown") == sign_of("asleep", is_plain=True) == "?"


def test_to_know_a_sign_loads_no_connection() -> None:
    code = (
        "import sys, gpuherd.client.states, gpuherd.client\n"
        "print(sorted({'msgspec', 'socket', 'gpuherd.client.line'} & set(sys.modules)))\n"
        "from gpuherd.client import HubClient, Login\n"
        "print(HubClient.__name__, Login.__name__, hasattr(gpuherd.client, 'HubCleint'))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["[]", "HubClient Login False"]
