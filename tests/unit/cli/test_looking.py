"""The hub's answer as JSON for scripts: what was asked for, and nothing that acts on a terminal."""

from __future__ import annotations

import json

import msgspec
import pytest

from gpuherd.cli.looking import reduced_json
from gpuherd.client.herd_views import Herd
from gpuherd.model.errors import Failed

NAMES = (
    "ada",
    "Ünïcode",
    "\N{BLACK SQUARE}\N{FIRE}",
    "\N{RIGHT-TO-LEFT OVERRIDE}evil",
    'quo"te\\u0041',
    "\x1b[2J\x9b",
)


def answer() -> bytes:
    nodes = [
        {
            "id": f"n{number}",
            "name": name,
            "devices": [
                {
                    "node_id": f"n{number}",
                    "facts": {"uuid": f"GPU-{index}", "index": index, "name": "A"},
                    "new": 0.1 + 0.2,
                }
                for index in range(2)
            ],
        }
        for number, name in enumerate(NAMES)
    ]
    return json.dumps({"time": 1.5, "weather": None, "nodes": nodes}, ensure_ascii=False).encode()


def test_all_of_it_with_what_this_client_does_not_know() -> None:
    told = answer()
    text = reduced_json(told, msgspec.json.decode(told, type=Herd))
    assert json.loads(text) == json.loads(told)
    assert text == json.dumps(json.loads(told), indent=2), "as it always was"
    assert text.isascii()
    assert "\x1b" not in text


def test_some_of_it() -> None:
    herd = msgspec.json.decode(answer(), type=Herd)
    node = herd.nodes[1]
    left = msgspec.structs.replace(node, devices=node.devices[1:])
    told = json.loads(reduced_json(answer(), msgspec.structs.replace(herd, nodes=(left,))))
    assert [(node["name"], [gpu["facts"]["uuid"] for gpu in node["devices"]]) for node in told["nodes"]] == [
        ("Ünïcode", ["GPU-1"])
    ]


def test_a_number_that_is_none_is_told() -> None:
    herd = msgspec.json.decode(answer(), type=Herd)
    with pytest.raises(Failed, match="cannot be read"):
        reduced_json(answer().replace(b'"weather": null', b'"weather": 1e400'), herd)
