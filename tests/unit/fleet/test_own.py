"""People read the command lines of their own processes, and of nobody else's."""

from __future__ import annotations

from collections.abc import Callable

from gpuherd.fleet.fleet import Fleet
from gpuherd.fleet.names import Names
from gpuherd.fleet.settings import DisplaySettings
from gpuherd.model.processes import Process, ProcessUse
from support.herd import WORKING, ManualClock, Speaker, gpu


def table(*users: str | None) -> dict[str, tuple[object, ...]]:
    return {
        "processes": tuple(
            Process(pid=pid, user=user, command=f"run of {user} {pid}", started_at=5.0)
            for pid, user in enumerate(users, 10)
        ),
        "uses": tuple(ProcessUse(process=place, device=0) for place in range(len(users))),
    }


def commands(fleet: Fleet, *users: str) -> list[tuple[str, int, str | None]]:
    own = fleet.own_commands(users)
    return [*zip(own.node_id, own.pid, own.command, strict=True)]


def test_own_processes_are_found_and_changes_noticed(fleet: Fleet, speaker: Callable[[str], Speaker]) -> None:
    one, two = speaker("n1"), speaker("n2")
    one.describe(gpu(0), **table("ada", "bob", None))  # type: ignore[arg-type]
    one.sample(WORKING)
    two.describe(gpu(0), **table("bob", "ada", "ada"))  # type: ignore[arg-type]
    two.sample(WORKING)
    assert commands(fleet, "ada") == [
        ("n1", 10, "run of ada 10"),
        ("n2", 11, "run of ada 11"),
        ("n2", 12, "run of ada 12"),
    ]
    assert len(commands(fleet, "ada", "bob")) == 5
    assert commands(fleet) == commands(fleet, "Ada") == []
    assert fleet.take_changed_users() == {"ada", "bob"}
    one.sample(WORKING)
    assert fleet.take_changed_users() == set(), "numbers alone are no news"
    two.run_table(**table("bob"))  # type: ignore[arg-type]
    two.sample(WORKING)
    assert fleet.take_changed_users() == {"ada", "bob"}
    fleet.remove_node("n1")
    assert (commands(fleet, "ada"), fleet.take_changed_users()) == ([], {"ada", "bob"})


def test_a_person_is_known_by_what_nodes_call_it_not_by_what_is_shown(clock: ManualClock) -> None:
    fleet = Fleet(clock=clock, names=Names(DisplaySettings(users={"ada2": "bob"})))
    fleet.add_node("n1", "n1")
    node = Speaker(fleet, clock, "n1")
    node.describe(gpu(0), **table("ada2"))  # type: ignore[arg-type]
    node.sample(WORKING)
    assert commands(fleet, "bob") == []
    assert commands(fleet, "ada2") == [("n1", 10, "run of ada2 10")]
