"""The herd as lines: every state, hostile names, narrow screens."""

from __future__ import annotations

import re
import unicodedata

import pytest

from gpuherd.cli.details import gpu_lines, node_lines
from gpuherd.cli.herd_lines import brief_lines, joined_places, node_blocks, total_lines, who
from gpuherd.cli.showing import Screen, plain_width
from gpuherd.cli.status import status_lines
from gpuherd.client.herd_views import Herd, Node, Notice, Problem
from support.seen_herd import NOW, every_state, gpu, hostile_herd, node

HIDDEN = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}


@pytest.fixture(autouse=True)
def in_utc(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gpuherd.cli.herd_lines.clock", lambda at, now: f"+{(at - now) / 3600:.0f}h")


def row(lines: list[str], place: str) -> str:
    """Give the row of a GPU of gpu07, its spaces made one."""
    return next(re.sub(r" +", " ", line.strip()) for line in lines if line.startswith(f"  {place} "))


def test_totals_answer_first_what_is_free() -> None:
    states, types = total_lines(every_state(), Screen())
    assert states.split("   ") == [
        "○ 3 GPUs and 1 slice free of 18 GPUs and 2 slices on 6 nodes",
        "■ 4 busy",
        "▨ 1 held idle",
        "◩ 1 booked",
        "✕ 5 fault",
        "◌ 1 stale",
        "◌ 2 offline",
        "? 1 unknown",
        "? 1 resting",
        "✕ 1 node in fault",
    ]
    assert types == "  A100 80GB ×2 (2 on one node)   A100 80GB 1g.10gb ×1   H100 80GB ×1"
    assert total_lines(Herd(time=NOW), Screen()) == ["○ 0 free of 0 GPUs on 0 nodes"]


@pytest.mark.promise("overload-is-said")
@pytest.mark.parametrize("width", [0, 40, 80])
def test_notices_are_told_to_the_end(width: int) -> None:
    message = f"the hub is overloaded: {'samples are late; ' * 20}give it more CPU"
    _, *lines = total_lines(
        Herd(time=NOW, notices=(Notice(code="overloaded", message=message),)), Screen(width=width)
    )
    assert " ".join(line.strip() for line in lines) == f"! {message}"
    assert not width or all(len(line) <= width for line in lines)


def test_every_state_is_told_in_words() -> None:
    lines = node_blocks(every_state(), Screen())
    assert lines[1].startswith("gpu07  A100 80GB ×10  1 s ago")
    assert row(lines, "0") == "0 ○ free ┄┄┄┄┄┄┄┄ 0% 38.0/80G 62° 410W"
    assert row(lines, "1") == "1 ■ busy ━━━━━━┄┄ 74% 38.0/80G 62° 410W ada 10G 5 h, bob 10G 5 h"
    assert row(lines, "2") == "2 ▨ held idle 3 h ┄┄┄┄┄┄┄┄ 0% 38.0/80G 62° 410W ada 10G 5 h"
    assert row(lines, "3").endswith("W booked by cleo until +2h")
    assert row(lines, "4") == "4 ✕ fault 1 h - -/80G Xid 79: GPU has fallen off the bus"
    assert row(lines, "5") == "5 ? unknown - -/80G some values that decide this could not be read"
    assert row(lines, "6").startswith("6 ? resting - 38.0/80G"), "a state that a newer hub knows"
    assert row(lines, "7").endswith("W booked from +3h by dan")
    assert row(lines, "8").endswith("W eve 10G 5 h, booked by cleo until +200h")
    assert row(lines, "9").endswith("W cleo 10G 5 h, booked until +2h")


def test_nodes_that_are_silent_do_not_look_alive() -> None:
    lines = node_blocks(every_state(), Screen())
    text = "\n".join(lines)
    assert "gpu08  A100 80GB ×1  ◌ stale for 9 s  it is stale" in text
    assert "gpu09  A100 80GB ×2  ◌ offline for 3 h  it is offline" in text
    assert "gpu10  ? never reported" in text
    assert "gpu11  A100 80GB ×4  1 s ago  ✕ fault: the driver does not respond" in text
    assert len([line for line in lines if re.match(r"  \d", line)]) == 10 + 3, "of the silent ones no rows"
    assert who(gpu(0, "offline", users=("ada",)), NOW) == "last seen with ada"


def test_slices_stand_for_their_gpu_and_unknown_owners_are_told() -> None:
    lines = node_blocks(every_state(), Screen())
    assert row(lines, "0.0") == "0.0 ○ free ┄┄┄┄┄┄┄┄ 0% 38.0/10G 62° 410W 1g.10gb"
    assert row(lines, "0.1").endswith("1g.10gb unknown owner 10G 5 h")
    nothing_known = next(line for line in lines if "H100 80GB" in line and line.startswith("  1"))
    assert re.sub(r" +", " ", nothing_known.strip()) == "1 ○ free - - H100 80GB"


def test_one_line_per_node() -> None:
    lines = brief_lines(every_state(), Screen())
    assert lines[0].startswith("gpu07  ○■▨◩✕??○■■  2 free  A100 80GB ×10")
    assert "Xid 79" in lines[0]
    assert "ada ×2, bob, eve, cleo" in lines[0]
    assert "stale 9 s" in lines[1]
    painted = brief_lines(every_state(), Screen(colours=16))[0]
    assert "\x1b[32m○\x1b[0m\x1b[36m■\x1b[0m" in painted


def test_a_node_without_a_gpu_to_show_says_why() -> None:
    hung = Node(
        id="n", name="rtx-04", state="live", age_seconds=1.0, problems=(Problem(message="the driver hangs"),)
    )
    empty = Node(id="m", name="login", state="live", age_seconds=1.0)
    lines = brief_lines(Herd(time=NOW, nodes=(hung, empty)), Screen())
    assert [re.sub(r" +", " ", line) for line in lines] == ["rtx-04 ✕ the driver hangs", "login"]


@pytest.mark.parametrize(
    "herd", [every_state(), hostile_herd(), Herd(time=NOW)], ids=["all", "hostile", "empty"]
)
@pytest.mark.parametrize("width", [0, 10, 24, 40, 80, 200])
@pytest.mark.parametrize("colours", [0, 16, 256])
@pytest.mark.promise("text-is-inert")
def test_nothing_in_a_herd_acts_on_the_terminal_or_breaks_its_lines(
    herd: Herd, width: int, colours: int
) -> None:
    screen = Screen(width=width, height=30 if width else 0, colours=colours)
    lines = [
        *status_lines(herd, screen),
        *status_lines(herd, screen, is_brief=True),
        *status_lines(herd, screen, is_brief=False),
    ]
    for one in herd.nodes:
        lines += node_lines(one, herd.time, screen)
        for device in one.devices:
            lines += gpu_lines(one, device, herd.time, screen)
    for line in lines:
        bare = re.sub(r"\x1b\[[0-9;]+m", "", line)
        assert not {unicodedata.category(letter) for letter in bare} & HIDDEN, repr(line)
        if not colours:
            assert bare == line
        if width:
            assert plain_width(line) <= width, (width, line)


def test_rows_where_they_fit_and_lines_where_they_do_not() -> None:
    herd = every_state()
    tall, low = Screen(width=100, height=60), Screen(width=100, height=20)
    assert any("━" in line for line in status_lines(herd, tall))
    assert not any("━" in line for line in status_lines(herd, low))
    assert any("━" in line for line in status_lines(herd, low, is_brief=False))
    assert status_lines(herd, low, is_brief=False)[-1] == total_lines(herd, low)[-1], (
        "told again where it is seen"
    )
    one = Herd(time=NOW, nodes=herd.nodes[:1])
    assert any("━" in line for line in status_lines(one, low)), "a single node is shown in full"


def test_places_are_written_as_they_are_booked() -> None:
    places = [("n1", "0"), ("n1", "1"), ("n2", "3"), ("n1", "2"), ("n1", "7"), ("n2", "4"), ("n3", "0.1")]
    assert joined_places(places) == "n1/0-2,7 n2/3,4 n3/0.1"


def test_a_node_in_all_its_details() -> None:
    text = "\n".join(node_lines(every_state().nodes[4], NOW, Screen()))
    assert text.startswith("gpu11  live, 1 s ago\n")
    assert "  ✕  the driver does not respond" in text
    never = "\n".join(node_lines(node("gpu10", state="never", age=None), NOW, Screen()))
    assert never.startswith("gpu10  never  it is never")


def test_a_gpu_in_all_its_details() -> None:
    herd = every_state()
    text = "\n".join(gpu_lines(herd.nodes[0], herd.nodes[0].devices[8], NOW, Screen()))
    assert text.startswith("gpu07/8  A100 80GB  ■ busy for 1 h  because busy\n")
    assert re.search(r"utilisation +74%  ━", text)
    assert re.search(r"4242 +eve +10G", text)
    assert re.search(r"◩ current +cleo ", text)
    unknown = "\n".join(gpu_lines(herd.nodes[5], herd.nodes[5].devices[3], NOW, Screen()))
    assert re.search(r"utilisation +-\n +memory +-\n?", unknown), "what is not known is not 0"
