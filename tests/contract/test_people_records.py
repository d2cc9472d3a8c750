"""What every backend of the people's records must do."""

from __future__ import annotations

import pytest
from sqlalchemy import Engine

from gpuherd.model.errors import Refused
from gpuherd.model.people import Account, Actor, Role
from gpuherd.records.people import PeopleRecords

NOW = 1_800_000_000.0
BY = Actor(account_id=None, label="test", peer="192.0.2.1")


@pytest.fixture
def people(engine: Engine) -> PeopleRecords:
    return PeopleRecords(engine)


def add(people: PeopleRecords, name: str, role: Role = "member", **more: object) -> Account:
    return people.create_account(
        name=name,
        display_name=name.title(),
        role=role,
        now=NOW,
        by=BY,
        **more,  # type: ignore[arg-type]
    )


def test_accounts_are_read_back(people: PeopleRecords) -> None:
    ada = add(people, "ada", "admin", groups=["vision", "audio"], linux_names=["alovelace"])
    assert ada.groups == ("audio", "vision")
    assert ada.linux_names == ("ada", "alovelace")
    loaded = people.load()
    assert loaded.accounts == (ada,)
    assert loaded.revision == people.revision() == 1
    assert people.account_by_name("ADA") == people.account(ada.id) == ada


def test_names_are_compared_without_case_and_composition(people: PeopleRecords) -> None:
    add(people, "Zoé")
    with pytest.raises(Refused) as caught:
        add(people, "ZOE\N{COMBINING ACUTE ACCENT}")
    assert caught.value.code == "name_taken"
    assert people.account_by_name("zoe\N{COMBINING ACUTE ACCENT}") is not None


def test_the_last_admin_stays(people: PeopleRecords) -> None:
    ada = add(people, "ada", "admin")
    for change in (
        lambda: people.change_account(ada.id, role="member", now=NOW, by=BY),
        lambda: people.change_account(ada.id, is_disabled=True, now=NOW, by=BY),
        lambda: people.erase_account(ada.id, now=NOW, by=BY),
    ):
        with pytest.raises(Refused) as caught:
            change()
        assert caught.value.code == "last_admin"
    assert people.load().accounts == (ada,)
