"""Accounts of people for whom other services vouch, on every database."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import Engine

from gpuherd.auth.provisioning import Provisioning, RoleRules
from gpuherd.auth.ways import VouchedFor
from gpuherd.model.errors import Refused
from gpuherd.model.people import Account, Actor, Role
from gpuherd.records.audit import AuditRecords
from gpuherd.records.people import PeopleRecords

NOW = 1_700_000_000.0
BY = Actor(account_id=None, label="login by ldap", peer="192.0.2.7")
RULES = RoleRules(
    default_role="viewer", admin_groups=frozenset({"gpu-admins"}), member_groups=frozenset({"gpu-users"})
)
ALICE = VouchedFor(
    source="ldap",
    subject="de96be54-75f2-1041-8ac0-23225a3e63dd",
    name="alice",
    display_name="Alice Ash",
    groups=("gpu-users", "staff"),
    linux_names=("aash",),
)


@pytest.fixture
def people(engine: Engine) -> PeopleRecords:
    return PeopleRecords(engine)


def with_groups(*groups: str) -> VouchedFor:
    return VouchedFor(
        source=ALICE.source,
        subject=ALICE.subject,
        name=ALICE.name,
        display_name=ALICE.display_name,
        groups=groups,
    )


def enter(people: PeopleRecords, vouched: VouchedFor, rules: RoleRules = RULES) -> Account:
    return Provisioning(people, rules).account_of(vouched, now=NOW, by=BY)


def refusal(people: PeopleRecords, vouched: VouchedFor) -> Refused:
    with pytest.raises(Refused) as refused:
        enter(people, vouched)
    return refused.value


def local(people: PeopleRecords, name: str, role: Role = "member") -> Account:
    return people.create_account(name=name, display_name=name, role=role, now=NOW, by=BY)


def test_first_login_makes_the_account(people: PeopleRecords, engine: Engine) -> None:
    account = enter(people, ALICE)

    assert (account.name, account.display_name, account.source) == ("alice", "Alice Ash", "ldap")
    assert (account.role, account.groups) == ("member", ("gpu-users", "staff"))
    assert account.linux_names == ("aash", "alice")
    assert people.account_by_subject("ldap", ALICE.subject) == account
    assert "account.create" in {entry.action for entry in AuditRecords(engine).search()}


def test_second_login_finds_it_and_leaves_no_trace(people: PeopleRecords) -> None:
    account = enter(people, ALICE)
    revision = people.revision()

    assert enter(people, ALICE) == account
    assert people.revision() == revision


def test_renamed_person_keeps_the_account(people: PeopleRecords) -> None:
    account = enter(people, ALICE)
    renamed = VouchedFor(
        source="ldap", subject=ALICE.subject, name="alice.oak", display_name="Alice Oak", groups=()
    )

    assert enter(people, renamed).id == account.id


@pytest.mark.parametrize(
    ("groups", "role"),
    [
        ((), "viewer"),
        (("staff",), "viewer"),
        (("gpu-users",), "member"),
        (("gpu-admins",), "admin"),
        (("gpu-admins", "gpu-users"), "admin"),
        (("GPU-ADMINS",), "viewer"),
    ],
)
@pytest.mark.promise("roles-by-groups")
def test_groups_make_the_role(people: PeopleRecords, groups: tuple[str, ...], role: Role) -> None:
    assert enter(people, with_groups(*groups)).role == role


def test_groups_and_role_follow_the_service_at_each_login(people: PeopleRecords) -> None:
    local(people, "root-of-all", "admin")
    assert enter(people, with_groups("gpu-admins")).role == "admin"

    dropped = enter(people, with_groups("gpu-users"))
    assert (dropped.role, dropped.groups) == ("member", ("gpu-users",))
    assert enter(people, with_groups()).role == "viewer"
    assert enter(people, with_groups("gpu-admins")).role == "admin"


def test_only_admin_who_lost_the_group_does_not_come_in(people: PeopleRecords) -> None:
    enter(people, with_groups("gpu-admins"))

    told = refusal(people, with_groups("gpu-users"))
    assert told.code == "last_admin"
    assert "gpuherd user role" in str(told)


@pytest.mark.parametrize("given", ["viewer", "member", "admin"])
def test_role_given_by_hand_stays_where_no_groups_say_otherwise(people: PeopleRecords, given: Role) -> None:
    local(people, "root-of-all", "admin")
    account = enter(people, ALICE, RoleRules())
    assert account.role == "member"
    people.change_account(account.id, role=given, now=NOW, by=BY)

    assert enter(people, ALICE, RoleRules()).role == given


def test_admin_by_hand_stays_admin_if_only_members_come_by_group(people: PeopleRecords) -> None:
    rules = RoleRules(default_role="viewer", member_groups=frozenset({"gpu-users"}))
    account = enter(people, with_groups(), rules)
    assert account.role == "viewer"
    people.change_account(account.id, role="admin", now=NOW, by=BY)

    assert enter(people, with_groups("gpu-users"), rules).role == "admin"


def test_service_that_tells_no_groups_leaves_groups_and_role_to_the_hub(people: PeopleRecords) -> None:
    silent = VouchedFor(source="proxy", subject="alice", name="alice", display_name="alice")
    local(people, "root-of-all", "admin")
    account = enter(people, silent)
    assert (account.role, account.groups) == ("viewer", ())
    people.change_account(account.id, role="admin", groups=["vision"], now=NOW, by=BY)

    again = enter(people, silent)
    assert (again.role, again.groups) == ("admin", ("vision",))


def test_group_can_be_meant_of_one_source_only(people: PeopleRecords) -> None:
    rules = RoleRules(default_role="viewer", admin_groups=frozenset({"ldap:wheel"}))
    other = VouchedFor(source="oidc", subject="x", name="mallory", display_name="M", groups=("wheel",))

    assert enter(people, with_groups("wheel"), rules).role == "admin"
    assert enter(people, other, rules).role == "viewer"


def test_group_that_is_called_like_one_of_another_source_is_not_that_one(people: PeopleRecords) -> None:
    rules = RoleRules(default_role="viewer", admin_groups=frozenset({"ldap:wheel"}))
    posing = VouchedFor(source="oidc", subject="x", name="mallory", display_name="M", groups=("ldap:wheel",))

    assert enter(people, posing, rules).role == "viewer"


@pytest.mark.parametrize("name", ["alice", "ALICE"])
@pytest.mark.promise("roles-by-groups")
def test_name_of_a_local_account_is_not_taken_over(people: PeopleRecords, name: str) -> None:
    owner = local(people, name, "admin")

    told = refusal(people, ALICE)
    assert told.code == "name_taken"
    assert "ask an admin" in str(told)
    assert people.account(owner.id) == owner
    assert people.account_by_subject("ldap", ALICE.subject) is None


def test_name_of_another_persons_account_is_not_taken_over(people: PeopleRecords) -> None:
    enter(people, ALICE)
    by_oidc = VouchedFor(source="oidc", subject=ALICE.subject, name="alice", display_name="Mallory")
    newcomer = VouchedFor(source="ldap", subject="someone new", name="alice", display_name="Another Alice")

    assert refusal(people, by_oidc).code == "name_taken"
    assert refusal(people, newcomer).code == "name_taken"


def test_closed_account_stays_closed(people: PeopleRecords) -> None:
    local(people, "root-of-all", "admin")
    account = enter(people, ALICE)
    people.change_account(account.id, is_disabled=True, now=NOW, by=BY)

    assert refusal(people, with_groups("gpu-admins")).code == "account_disabled"
    unchanged = people.account(account.id)
    assert unchanged is not None
    assert (unchanged.role, unchanged.is_disabled) == ("member", True)


def test_erased_person_starts_anew(people: PeopleRecords) -> None:
    local(people, "root-of-all", "admin")
    account = enter(people, ALICE)
    people.erase_account(account.id, now=NOW, by=BY)

    assert enter(people, ALICE).id != account.id


def test_users_on_the_nodes_follow_the_service_and_keep_what_an_admin_added(people: PeopleRecords) -> None:
    account = enter(people, ALICE)
    people.change_account(account.id, linux_names=["aash", "render"], now=NOW, by=BY)

    assert enter(people, ALICE).linux_names == ("aash", "alice", "render")
    moved = VouchedFor(
        source="ldap", subject=ALICE.subject, name="alice", display_name="Alice", linux_names=("aoak",)
    )
    assert enter(people, moved).linux_names == ("alice", "aoak")


def test_user_on_the_nodes_that_is_anothers_is_left_to_them(people: PeopleRecords) -> None:
    owner = local(people, "owner")
    people.change_account(owner.id, linux_names=["aash"], now=NOW, by=BY)

    assert enter(people, ALICE).linux_names == ("alice",)
    still = people.account(owner.id)
    assert still is not None
    assert "aash" in still.linux_names


def test_first_logins_at_the_same_moment_make_one_account(people: PeopleRecords) -> None:
    with ThreadPoolExecutor(8) as pool:
        accounts = list(pool.map(lambda _: enter(people, ALICE), range(8)))

    assert len({account.id for account in accounts}) == 1
    assert len(people.load().accounts) == 1
