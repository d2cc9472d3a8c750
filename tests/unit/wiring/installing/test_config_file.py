"""gpuherd.toml as `gpuherd install` writes it: ours until someone edits it."""

from __future__ import annotations

import pytest

from gpuherd.model.errors import Misconfigured, Refused
from gpuherd.wiring.config import read_config
from gpuherd.wiring.installing.config_file import config_with, render

PLACE = "/etc/gpuherd/gpuherd.toml"


def test_what_is_written_can_be_read() -> None:
    choices = {"hub": {"listen": "0.0.0.0:80"}, "agent": {"hub_url": "https://h/", "node_name": 'Ada "1" 🐑'}}
    config = read_config(render(choices), PLACE)
    assert config.hub.listen == "0.0.0.0:80"
    assert str(config.hub.state_dir) == "/var/lib/gpuherd"
    assert config.agent.node_name == 'Ada "1" 🐑'
    assert config.agent.state_dir == "/var/lib/gpuherd-agent"


def test_a_file_of_ours_takes_further_choices() -> None:
    first = config_with({"hub": {"listen": "0.0.0.0:8470"}}, None, PLACE)
    both = config_with({"agent": {"hub_url": "http://127.0.0.1:8470"}}, first, PLACE)
    assert both == render({"hub": {"listen": "0.0.0.0:8470"}, "agent": {"hub_url": "http://127.0.0.1:8470"}})
    assert config_with({"hub": {"base_path": "/gpus/"}}, both, PLACE) == render(
        {
            "hub": {"listen": "0.0.0.0:8470", "base_path": "/gpus/"},
            "agent": {"hub_url": "http://127.0.0.1:8470"},
        }
    )


@pytest.mark.parametrize("edit", ["# mine\n", "[bookings]\nenabled = false\n"])
def test_an_edited_file_that_has_the_choices_stays(edit: str) -> None:
    edited = render({"hub": {"listen": "0.0.0.0:8470"}}) + edit
    assert config_with({"hub": {"listen": "0.0.0.0:8470"}}, edited, PLACE) == edited


def test_an_edited_file_that_lacks_a_choice_is_left_and_told() -> None:
    edited = render({}) + "# mine\n"
    with pytest.raises(
        Refused, match=r'has been edited and is not changed; set in it: \[hub\] listen = "0.0.0.0:1"'
    ):
        config_with({"hub": {"listen": "0.0.0.0:1"}}, edited, PLACE)


@pytest.mark.parametrize(
    ("choices", "complaint"),
    [
        ({"hub": {"listen": "everywhere"}}, "hub.listen"),
        ({"hub": {"base_path": "gpus"}}, "hub.base_path"),
    ],
)
def test_nothing_is_written_that_would_not_start(choices: dict[str, dict[str, str]], complaint: str) -> None:
    with pytest.raises(Misconfigured, match=complaint):
        config_with(choices, None, PLACE)


def test_what_is_no_toml_is_left() -> None:
    with pytest.raises(Misconfigured, match="is not valid TOML"):
        config_with({}, "[hub", PLACE)
