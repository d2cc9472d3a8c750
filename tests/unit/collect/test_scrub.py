"""No secret leaves the node, harmless options stay readable, nasty input costs little."""

from __future__ import annotations

import re
import shlex
import string
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuherd.collect.scrub import HIDDEN, LONGEST_TEXT, RULES, scrub
from gpuherd.collect.secret_shapes import PROGRAM_FLAGS, TOKEN_SHAPES, is_secret_name

DOC = (Path(__file__).parents[3] / "docs" / "scrubbing.md").read_text()
ROWS = re.findall(r"^\| `(\w+)` \| `(.*?)` \| `(.*?)` \|$", DOC, re.MULTILINE)
KEPT = re.findall(r"^\| `(.*?)` \| [^`|]+ \|$", DOC.split("| kept |")[1], re.MULTILINE)


@pytest.mark.parametrize(("rule", "before", "after"), ROWS)
@pytest.mark.promise("secrets-scrubbed-on-node")
def test_documented_example(rule: str, before: str, after: str) -> None:
    assert " ".join(scrub(shlex.split(before))) == after


@pytest.mark.parametrize("text", KEPT)
def test_documented_harmless_text_is_kept(text: str) -> None:
    assert scrub(shlex.split(text)) == shlex.split(text)


def test_doc_and_code_list_the_same() -> None:
    assert {rule for rule, _, _ in ROWS} == set(RULES)
    assert len(KEPT) == 4
    shapes = DOC.split("## Shapes of tokens")[1].split("##")[0]
    assert [" ".join(shape.split()) for shape in shapes.split("·")] == list(TOKEN_SHAPES)
    assert re.findall(r"`(\S+)`", DOC.split("## Programs")[1].split("##")[0]) == list(PROGRAM_FLAGS)
    assert f"{LONGEST_TEXT:,} characters" in DOC


WORD = string.ascii_letters + string.digits
SECRETS = st.text(alphabet=WORD + "!#$%*+./:?@^_~-=", min_size=6, max_size=40).map(
    lambda s: "Zq9" + s + "7vX"
)
SECRET_NAMES = st.sampled_from(
    ["token", "hf-token", "password", "db_password", "api-key", "apiKey", "secret", "client_secret", "auth_token",
     "passwd", "aws_secret_access_key", "trainer.wandb.api_key", "access-token", "private_key", "bearer-token"]
)  # fmt: skip
ENV_NAMES = st.sampled_from(
    ["TOKEN", "HF_TOKEN", "PASSWORD", "PGPASSWORD", "AWS_SECRET_ACCESS_KEY", "WANDB_API_KEY", "DB_PASS", "MY_KEY",
     "GITHUB_PAT", "AZURE_CLIENT_SECRET", "JWT", "REDIS_AUTH", "TOKEN_FOR_HUB"]
)  # fmt: skip
HARMLESS = st.sampled_from(
    ["python", "train.py", "--lr", "0.1", "-v", "model=gpt", "--epochs=3", "https://x/y"]
)


@st.composite
def planted(draw: st.DrawFn) -> tuple[list[str], str]:
    secret, name, variable = draw(SECRETS), draw(SECRET_NAMES), draw(ENV_NAMES)
    in_url = secret.translate(str.maketrans("", "", "/?#"))  # no client takes a URL with these unescaped
    spaced = draw(st.sampled_from(["", " more words"]))
    forms = [
        [f"--{name}", secret + spaced],
        [f"--{name}={secret}{spaced}"],
        [f"-{name}", secret],
        [f"{variable}={secret}{spaced}"],
        ["env", f"{variable}={secret}"],
        ["docker", "run", "-e", f"{variable}={secret}"],
        [f"--env={variable}={secret}"],
        ["bash", "-c", f"set -e\nexport {variable}='{secret}{spaced}' && python x.py"],
        ["sh", "-c", f"python x.py --{name} '{secret}{spaced}' --lr 1"],
        ["sh", "-c", f'python x.py --{name}="{secret}{spaced}" --lr 1'],
        [f"python x.py --{name} {secret} --lr 1"],
        ["ssh", "host", f"python x.py --{name} {secret} --lr 1"],
        [f"++{name}={secret}"],
        ["-H", f"X-{name}: {secret}"],
        ["-H", f"Authorization: Bearer {secret}"],
        ["--header=Authorization: Basic " + secret],
        ['{"n": 1, "' + name + '": "' + secret + spaced + '"}'],
        ["{'" + name + "': '" + secret + spaced + "'}"],
        [f"https://user:{in_url}@host/path"],
        [f"https://host/path?n=1&{name}={secret}&m=2"],
        [f"host=db password={secret} dbname=x"],
        ["sshpass", "-p", secret],
        ["sshpass", f"-p{secret}"],
        ["sudo", "mysql", "-u", "root", f"-p{secret}"],
        ["/usr/bin/curl", "-u", f"user:{secret}", "https://x"],
    ]
    before, after = draw(st.lists(HARMLESS, max_size=4)), draw(st.lists(HARMLESS, max_size=4))
    chosen = draw(st.sampled_from(forms))
    if any("user:" in part and "://" in part for part in chosen):
        secret = in_url
    return [*before, *chosen, *after], secret


@settings(max_examples=600, deadline=None)
@given(planted())
def test_no_planted_secret_survives(case: tuple[list[str], str]) -> None:
    arguments, secret = case
    text = " ".join(scrub(arguments))
    assert secret not in text
    # Not even a larger piece of it, unless the rest says the same: a password may have "password" in it.
    rest = " ".join(arguments).replace(secret, " ")
    pieces = (secret[i : i + 8] for i in range(len(secret) - 7))
    assert not any(piece in text for piece in pieces if piece not in rest)


@pytest.mark.parametrize(
    "token",
    [
        "hf_" + "a1B2" * 8, "ghp_" + "a1B2" * 9, "github_pat_" + "a1B2_" * 9, "glpat-" + "a1B2" * 5, "sk-" + "a1B2" * 9,
        "sk-proj-" + "a1-B2" * 9, "sk-ant-api03-" + "a1B2" * 9, "AKIA" + "A1B2" * 4, "xoxb-123456789012-" + "a1B2" * 6,
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl", "AIza" + "a1B2" * 9, "nvapi-" + "a1B2" * 9,
        "npm_" + "a1B2" * 9, "pypi-" + "a1B2" * 9, "hvs." + "a1B2" * 6, "SG." + "a1B2" * 5 + "." + "a1B2" * 9,
        "gsk_" + "a1B2" * 9, "r8_" + "a1B2" * 9, "sk_live_" + "a1B2" * 6, "https://hooks.slack.com/services/T0/B0/a1B2c3",
        "https://discord.com/api/webhooks/123/a1B2c3", "123456789:AA" + "a1B2" * 9, "AGE-SECRET-KEY-1" + "A1B2" * 9,
        "wandb_v1_" + "a1B2" * 9, "dop_v1_" + "a1b2" * 9, "-----BEGIN OPENSSH PRIVATE KEY-----\na1B2c3a1B2\n-----END",
    ],
)  # fmt: skip
@pytest.mark.parametrize("frame", ["{}", "x={}", "run '{}' now", "file:{},y"])
def test_token_shapes_are_hidden_anywhere(token: str, frame: str) -> None:
    text = " ".join(scrub(["python", frame.format(token)]))
    assert token[-6:] not in text
    assert HIDDEN in text


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("--token", True), ("HF_TOKEN", True), ("--tokenizer", False), ("--max_tokens", False), ("--pad_token", False),
        ("--pad_token_id", False), ("--eos-token", False), ("--key", True), ("--sort-key", False), ("X-Api-Key", True),
        ("apiKey", True), ("SECRET_ID", True), ("--pin-memory", False), ("--author", False), ("--pass", True),
        ("--bypass", False), ("--compass", False), ("DB_PASS", True), ("--monkey", False), ("--keyboard", False),
        ("--api-tokens", True), ("", False), ("--", False), ("--password-file", False), ("--token-dropout", False),
    ],
)  # fmt: skip
def test_names(name: str, expected: bool) -> None:
    assert is_secret_name(name) is expected


@given(st.lists(st.text(max_size=60), max_size=20))
def test_never_raises_and_keeps_the_length(arguments: list[str]) -> None:
    assert len(scrub(arguments)) == len(arguments)


NASTY = {
    "one huge argument": ["python", "a" * 1_500_000],
    "many arguments": ["x"] * 750_000,
    "many flags": ["--token"] * 200_000,
    "equals": ["a=" * 750_000],
    "urls without user": ["://a:" * 300_000],
    "quotes": ["x='" * 500_000],
    "escapes": ['x="' + '\\"' * 700_000],
    "json": ['{"a":' * 300_000],
    "jwt dots": ["eyJaaaaaaaa" + "." * 1_500_000],
    "script": ["sh", "-c", "--token ' " * 150_000],
    "headers": ["a: " * 500_000],
}


@pytest.mark.parametrize("name", NASTY)
def test_nasty_input_is_cheap(name: str) -> None:
    arguments = NASTY[name]
    start = time.process_time()
    scrub(arguments)
    assert time.process_time() - start < 0.25


@pytest.mark.parametrize(
    "name", ["equals", "urls without user", "quotes", "escapes", "json", "script", "headers"]
)
def test_time_is_linear_below_the_cut(name: str) -> None:
    """Doubling the text may cost little more than double: no pattern backtracks over it."""
    (text,) = (argument for argument in NASTY[name] if len(argument) > 100)

    def cost(length: int) -> float:
        best = float("inf")
        for _ in range(5):
            start = time.process_time()
            scrub([text[:length]])
            best = min(best, time.process_time() - start)
        return best

    assert cost(LONGEST_TEXT - 1) < 6 * cost(LONGEST_TEXT // 2) + 0.002


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        (["'my program' --token hunter2"], ["'my program' --token ***"]),
        (['"worker 1"'], ['"worker 1"']),
        (["'torn title --token hunter2"], ["'torn title --token ***"]),
        (["sh", "-c", "bash -c 'mysql -phunter2 -e x'"], ["sh", "-c", "bash -c 'mysql -p*** -e x'"]),
        (
            ["python", "-c", "os.environ['API_KEY'] = 'hunter2'"],
            ["python", "-c", "os.environ['API_KEY'] = ***"],
        ),
        (["curl", "--user=me:hunter2", "https://x"], ["curl", "--user=***", "https://x"]),
    ],
)
def test_quotes_within_an_argument(arguments: list[str], shown: list[str]) -> None:
    assert scrub(arguments) == shown


@given(st.lists(st.text(alphabet="'\"ab -=c", max_size=60), max_size=4))
@settings(max_examples=300, deadline=None)
def test_quotes_in_any_order_end(arguments: list[str]) -> None:
    assert len(scrub(arguments)) == len(arguments)
    assert len(scrub(["sh", "-c", " ".join(arguments)])) == 3


def test_a_command_deep_within_commands_is_hidden() -> None:
    deep = "train --token hunter2"
    for quote in "'\"" * 1000:
        deep = f"{quote}-c {deep}{quote}"
    assert "hunter2" not in " ".join(scrub(["sh", "-c", deep]))


def test_a_secret_at_the_cut_does_not_leak() -> None:
    filler = "x" * (LONGEST_TEXT - 20)
    token = "hf_" + "a1B2" * 8
    assert "a1B2" not in " ".join(scrub([filler, token]))
    assert "a1B2" not in " ".join(scrub([f"{filler} {token}"]))
    assert scrub(["python", "t.py", "y" * LONGEST_TEXT]) == ["python", "t.py", "…"]
