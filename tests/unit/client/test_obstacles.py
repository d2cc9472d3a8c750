"""Whoever books what is broken, silent or in use is told."""

from __future__ import annotations

import pytest

from gpuherd.client.herd_views import Availability, Gpu, GpuFacts, Herd, Node, UsingProcess
from gpuherd.client.obstacles import obstacles


def told(state: str, reason: str = "", users: tuple[str | None, ...] = (), uuid: str = "GPU-1") -> list[str]:
    processes = tuple(UsingProcess(pid=number, user=user) for number, user in enumerate(users))
    gpus = tuple(
        Gpu(
            node_id="n1",
            short_name="A100",
            facts=GpuFacts(uuid=each, index=index, name="NVIDIA A100"),
            availability=Availability(state=state, reason=reason),
            processes=processes,
        )
        for index, each in enumerate((uuid, "GPU-2"))
    )
    herd = Herd(time=0.0, nodes=(Node(id="n1", name="gpu07", devices=gpus),))
    return obstacles({("n1", uuid), ("n2", "GPU-2")}, herd)


@pytest.mark.parametrize(
    ("state", "reason", "users", "sentence"),
    [
        ("fault", "GPU is lost", (), "gpu07/0 does not work: GPU is lost"),
        ("offline", "nothing for 3 h", ("ada",), "gpu07/0 is offline: nothing for 3 h"),
        ("unknown", "", (), "gpu07/0 is unknown"),
        ("busy", "computing", ("ada", None, "ada"), "gpu07/0 is in use by ada, an unknown user"),
        ("held", "idle", ("\x1b[2Jbob",), "gpu07/0 is in use by �[2Jbob (held idle)"),
    ],
)
def test_what_is_in_the_way(state: str, reason: str, users: tuple[str | None, ...], sentence: str) -> None:
    assert told(state, reason, users) == [sentence]


def test_what_nobody_uses_is_not_in_the_way() -> None:
    assert told("free") == told("booked") == []
    assert told("free", uuid="gpu-0-without-uuid") == ["gpu07/0 has no UUID, so programs cannot select it"]
