"""Passwords: what is taken, how they are kept, and that nobody can tell names from the time it takes."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from gpuherd.auth import common_passwords
from gpuherd.auth.passwords import Passwords, check_new_password, random_password
from gpuherd.model.errors import Refused
from support.tally import Tally

QUICK = Passwords(rounds=1, memory_kib=8)


def test_the_right_password_matches_and_no_other() -> None:
    kept = QUICK.hash("correct horse")
    assert QUICK.matches("correct horse", kept)
    for wrong in ("correct horsf", "", "Correct horse", "correct horse ", "x" * 2000):
        assert not QUICK.matches(wrong, kept)


def test_the_same_password_is_kept_differently_each_time() -> None:
    assert QUICK.hash("correct horse") != QUICK.hash("correct horse")
    assert re.match(r"\$argon2id\$v=19\$m=8,t=1,p=1\$", QUICK.hash("correct horse"))


def test_letters_typed_in_another_way_are_the_same() -> None:
    assert QUICK.matches("Zu\u0308rich am See", QUICK.hash("Z\u00fcrich am See"))


def test_nobody_has_no_password_but_is_checked_all_the_same() -> None:
    assert not QUICK.matches("anything", None)
    # What is compared with is a hash as a real one is, with the same amount of work.
    own = QUICK.hash("x")
    assert QUICK._nobody.rsplit("$", 2)[0] == own.rsplit("$", 2)[0]
    assert [len(part) for part in QUICK._nobody.split("$")] == [len(part) for part in own.split("$")]


@pytest.mark.parametrize("kept", ["", "x", "$argon2id$v=19$broken", "$2b$12$abcdefghijklmnopqrstuv"])
def test_what_is_no_hash_matches_nothing(kept: str) -> None:
    assert not QUICK.matches("x", kept)


def test_characters_that_cannot_be_encoded_are_no_trouble() -> None:
    assert not QUICK.matches("\ud800", QUICK.hash("x" * 10))
    assert QUICK.matches("\ud800 and more", QUICK.hash("\ud800 and more"))


def test_less_work_than_today_is_renewed() -> None:
    kept = QUICK.hash("correct horse")
    assert not QUICK.is_outdated(kept)
    assert Passwords(rounds=2, memory_kib=8).is_outdated(kept)


@pytest.mark.parametrize(
    "password", ["", "short", "x" * 1025, "Administrator", "aaaaaaaaaaaa", "123123123123"]
)
def test_the_first_that_anyone_would_try_are_refused(password: str) -> None:
    with pytest.raises(Refused) as told:
        check_new_password(password, "administrator")
    assert told.value.code == "password_weak"
    assert password not in str(told.value) or not password


COMMON = """
password12 Password123! P@ssw0rd2024 passwordpassword 1234567890 0123456789 9876543210 20261118123 qwertyuiop
QWERTYUIOP1 qwertyqwerty qwerty123456 12345qwert 1q2w3e4r5t 1qaz2wsx3edc asdfghjkl1 zxcvbnm123 abcdefghij abcabcabcabc
iloveyou123 letmein1234 welcome2024! trustno1trustno1 changeme123 football123 dragonmonkey Summer2026! superman!!
monkey1234567 admin123456 january2026 gpuherd2026 alicealice Alice.Alice alice12345 alice-2026! aaaaabbbbb
""".split()  # noqa: SIM905 - shorter than a list


@pytest.mark.attack
@pytest.mark.promise("common-passwords-refused")
def test_common_passwords_are_refused(tally: Tally) -> None:
    taken = []
    for password in COMMON:
        try:
            check_new_password(password, "alice")
        except Refused:
            continue
        taken.append(password)
    tally.add("common password is chosen", tries=len(COMMON), held=len(COMMON) - len(taken))
    assert taken == []


@pytest.mark.parametrize(
    "password",
    [
        "correct horse battery",
        "the password is long",
        "Zürich am See",
        "xk3jd-9s2kd",
        "hunting 2 rabbits",
        "4f9a1c77b2",
    ],
)
def test_other_passwords_are_taken(password: str) -> None:
    check_new_password(password, "alice")


def test_a_few_words_will_do() -> None:
    check_new_password("four words in a row", "administrator")


def test_passwords_that_are_made_up_are_good_and_never_the_same() -> None:
    made = {random_password() for _ in range(100)}
    assert len(made) == 100
    for password in made:
        assert re.fullmatch(r"[a-z2-7]{5}(-[a-z2-7]{5}){3}", password)
        check_new_password(password, "someone")


@pytest.mark.promise("passwords-are-judged-quickly")
def test_looking_at_a_long_password_takes_few_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    looks = 0

    def counting(word: str, look: Callable[[str], bool] = common_passwords._is_walk) -> bool:
        nonlocal looks
        looks += 1
        return look(word)

    monkeypatch.setattr(common_passwords, "_is_walk", counting)
    pieces = ("abc", "qwe", "asd", "zxc", "wer", "sdf", "xcv", "rty")
    for step in (1, 3, 5):
        walked = "".join(pieces[number * step * number % 8] for number in range(340))
        for password in (walked, walked + "kxw", "kxw" + walked, "1" + walked + "1"):
            common_passwords.is_common(password, "ada")
    assert 0 < looks < 50_000
