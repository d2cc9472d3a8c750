"""Of a command line, the program's name and nothing more."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuherd.fleet.programs import program_name


@pytest.mark.parametrize(
    ("command", "name"),
    [
        ("python train.py --data /scratch/secret", "python"),
        ("/home/ada/miniconda3/envs/secret/bin/python3.12 -m secret", "python"),
        ("pypy3 x", "python"),
        ("./secret-project/a.out --fast", "a.out"),
        ("/usr/lib/xorg/Xorg :0", "Xorg"),
        ("-bash", "bash"),
        ("[kworker/0:1]", "0"),
        ("ray::train_secret", "ray"),
        ("sshd: ada@pts/0", "sshd"),
        ("TOKEN=secret run", "TOKEN"),
        (r"C:\Users\ada\train.exe --x", "train"),
        ("torchrun", "torchrun"),
        ("g++ -O2", "g++"),
        ("/opt/app/", "app"),
        ("   ", None),
        ("", None),
        ("…", None),
        ("***", None),
    ],
)
def test_names(command: str, name: str | None) -> None:
    assert program_name(command) == name


@given(st.text())
def test_a_name_is_short_and_plain(command: str) -> None:
    name = program_name(command)
    assert name is None or (0 < len(name) <= 32 and name.isascii() and " " not in name and "/" not in name)


@given(st.text(alphabet="abc/-.= ", max_size=20), st.text(max_size=20))
def test_what_follows_the_first_word_says_nothing(first: str, rest: str) -> None:
    word = "x" + first.replace(" ", "")
    assert program_name(f"{word} {rest}") == program_name(word)
