"""A small herd to book from, people who book, and how they ask."""

from __future__ import annotations

from typing import Any

from msgspec import structs

from gpuherd.bookings.asking import Asker
from gpuherd.bookings.herd import Herd
from gpuherd.fleet.listing import ListedDevice
from gpuherd.model.bookings import DeviceRef
from gpuherd.model.people import Account, Actor, Role

__all__ = ["GIB", "HOUR", "NOW", "a100", "asker", "herd_of", "mig_slice", "person", "ref"]

GIB = 2**30
HOUR = 3_600
NOW = 1_794_820_800
"""2026-11-16 09:20 UTC, a Monday."""


def ref(node: str, index: int | str) -> DeviceRef:
    return DeviceRef(node, f"GPU-{node}-{index}")


def a100(node: str, index: int, **changes: Any) -> ListedDevice:
    """A free GPU."""
    device = ListedDevice(
        ref=ref(node, index),
        node_name=f"{node}.lab",
        short_name="A100 80GB",
        full_name="NVIDIA A100-SXM4-80GB",
        index=index,
        parent_uuid=None,
        parent_index=None,
        is_partitioned=False,
        memory_total_bytes=80 * GIB,
        state="free",
        users=frozenset(),
    )
    return structs.replace(device, **changes)


def mig_slice(node: str, parent: int, index: int, **changes: Any) -> ListedDevice:
    """A free slice of a GPU."""
    return a100(
        node,
        index,
        **{
            "ref": ref(node, f"{parent}-{index}"),
            "short_name": "A100 80GB 1g.10gb",
            "full_name": "NVIDIA A100-SXM4-80GB MIG 1g.10gb",
            "parent_uuid": ref(node, parent).uuid,
            "parent_index": parent,
            "memory_total_bytes": 10 * GIB,
            **changes,
        },
    )


def herd_of(*devices: ListedDevice, quiet: tuple[str, ...] = ()) -> Herd:
    return Herd(devices, quiet)


def person(name: str, role: Role = "member", *groups: str, **changes: Any) -> Account:
    account = Account(
        id=f"id-{name}", name=name, display_name=name.title(), role=role, groups=groups, linux_names=(name,)
    )
    return structs.replace(account, **changes)


def asker(account: Account) -> Asker:
    return Asker(account=account, by=Actor(account_id=account.id, label=account.name, peer="192.0.2.7"))
