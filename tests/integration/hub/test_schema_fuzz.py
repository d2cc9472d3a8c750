"""Whatever fits the schema, or nearly does, is answered with something better than a 500."""

from __future__ import annotations

import asyncio
import json
import logging
import threading
from collections.abc import Iterator
from typing import Any, NamedTuple, cast

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis.generation import GenerationMode

from gpuherd.api.hub import Hub
from gpuherd.api.openapi import schema_of
from gpuherd.api.rest import build_rest
from gpuherd.api.services import Services
from gpuherd.history.settings import HistorySettings, UsageSettings
from gpuherd.model.bookings import DeviceRef
from gpuherd.wiring.past import past_outfit
from support.booking_drafts import draft
from support.hub import NodeClient, running_hub
from support.people import BY, add_account, add_session, bearer, cookie
from support.running import PATIENCE_SECONDS
from support.soak import SOAK

LEFT_OUT = {
    "stream": "it does not end",
    "agentLink": "it is a WebSocket",
    "logOut": "it would end the session of the others",
    "endOtherSessions": "likewise",
}
SCHEMA = schemathesis.openapi.from_dict(json.loads(schema_of(build_rest(cast("Services", None)))))
OPERATIONS = {
    operation.definition.raw["operationId"]: operation
    for operation in (cast("Any", result).ok() for result in SCHEMA.get_all_operations())
}


ORDER = sorted(OPERATIONS.keys() - LEFT_OUT.keys(), key=lambda name: (name.startswith("erase"), name))
"""Those that remove what the others need come last."""


class Place(NamedTuple):
    """A hub with something in it."""

    url: str
    headers: dict[str, dict[str, str]]
    ids: dict[str, str]
    """Real ones, by the name of the parameter: made-up ones lead nowhere."""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    started, stop = threading.Event(), threading.Event()
    places: list[Place] = []

    async def run() -> None:
        folder = tmp_path_factory.mktemp("hub")
        past = past_outfit(HistorySettings(min_free_bytes=0), UsageSettings(), folder)
        async with running_hub(folder, public="read", hub_options={"past": past}) as hub:
            node = NodeClient(hub.url, (await hub.admit("node-1")).credential)
            await node.open()
            await node.describe()
            await node.sample()
            places.append(furnish(hub, node.credential))
            started.set()
            await asyncio.to_thread(stop.wait)
            await node.close()

    thread = threading.Thread(target=lambda: asyncio.run(run()), name="hub")
    thread.start()
    try:
        assert started.wait(PATIENCE_SECONDS)
        yield places[0]
    finally:
        stop.set()
        thread.join(PATIENCE_SECONDS)


def furnish(hub: Hub, credential: str) -> Place:
    admin, member = add_account(hub, "root", "admin"), add_account(hub, "ada")
    now = hub.clock.wall()
    (booking,) = hub.records.bookings.create(
        [draft(DeviceRef("node-1", "GPU-0"), at=int(now) + 3600, owner_id=member.id)], now=now, by=BY
    )
    return Place(
        url=hub.url.rstrip("/"),
        headers={
            "admin": cookie(add_session(hub, admin).secret),
            "node": bearer(credential),
            "nobody": {},
        },
        ids={"account_id": member.id, "booking_id": str(booking.id), "node_id": "node-1"},
    )


@pytest.mark.soak
# The hub lives in a thread beside and draws its own random numbers, which Hypothesis takes for the strategies'.
@pytest.mark.filterwarnings("ignore:Do not use the .random. module inside strategies")
@pytest.mark.parametrize("who", ["admin", "nobody"])
@pytest.mark.parametrize("name", ORDER)
def test_no_input_makes_the_hub_fail(
    place: Place, name: str, who: str, caplog: pytest.LogCaptureFixture
) -> None:
    operation = OPERATIONS[name]
    headers = place.headers["node" if (name, who) == ("postReport", "admin") else who]
    strategies = [
        operation.as_strategy(generation_mode=mode)
        for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE)
    ]

    @settings(
        max_examples=(8 if who == "admin" else 3) * SOAK,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
        database=None,
        deadline=None,
        derandomize=SOAK == 1,
    )
    @given(case=st.one_of(strategies), is_real=st.booleans())
    def play(case: Any, is_real: bool) -> None:
        if is_real and case.path_parameters:
            known = {key: place.ids[key] for key in case.path_parameters if key in place.ids}
            case.path_parameters.update(known)
        response = case.call(base_url=place.url, headers=headers, timeout=PATIENCE_SECONDS)
        assert response.status_code < 500, (response.status_code, response.text)

    with caplog.at_level(logging.ERROR, logger="gpuherd"):
        play()
    assert [record.message for record in caplog.records if record.name.startswith("gpuherd")] == []


def test_everything_else_is_tried() -> None:
    assert LEFT_OUT.keys() < OPERATIONS.keys()
