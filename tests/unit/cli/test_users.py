"""Who has what, as ``gpuherd users`` counts it."""

from __future__ import annotations

from msgspec import structs

from gpuherd.cli.users import SORTINGS, holders_of
from support.watched_herd import booking, device, made_up_herd, node, process


def test_a_holder_of_a_booking_is_the_user_however_the_name_is_written() -> None:
    """Names of a comments.json are free text, and compared without capitals and plus signs."""
    devices = (
        device(
            "gpu01", 0, "busy", process(1, "dropper", 4), bookings=(booking(1, "Dropper+", "current", -1, 1),)
        ),
        device("gpu01", 1, "booked", bookings=(booking(2, "Carol", "current", -1, 1),)),
        device("gpu01", 2, "booked", bookings=(booking(3, "carol+", "current", -1, 1),)),
    )
    herd = structs.replace(made_up_herd(), nodes=(node("gpu01", *devices),))
    counted = {holder.user: (len(holder.used), len(holder.booked)) for holder in holders_of(herd)}
    assert counted == {"dropper": (1, 1), "Carol": (0, 2)}


def test_users_are_sorted_by_gpus_memory_or_processes() -> None:
    devices = (
        device("gpu01", 0, "busy", process(1, "many", 1)),
        device("gpu01", 1, "busy", process(2, "many", 1)),
        device("gpu01", 2, "busy", process(3, "large", 40)),
        device("gpu01", 3, "busy", *(process(pid, "several", 2) for pid in range(4, 9))),
        # As much memory as the one before: then the number of processes counts.
        device("gpu01", 4, "busy", process(9, "one", 10)),
    )
    herd = structs.replace(made_up_herd(), nodes=(node("gpu01", *devices),))
    found = {
        by: [holder.user for holder in sorted(holders_of(herd), key=key)] for by, key in SORTINGS.items()
    }
    assert found == {
        "gpus": ["many", "large", "one", "several"],
        "memory": ["large", "several", "one", "many"],
        "processes": ["several", "many", "large", "one"],
    }
