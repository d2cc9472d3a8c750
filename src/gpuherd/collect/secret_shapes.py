"""What a secret looks like: names of options, shapes of tokens, options of programs that take passwords."""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import pairwise
from typing import Literal

__all__ = ["HIDDEN", "PROGRAM_FLAGS", "TOKEN_SHAPES", "FlagStyle", "is_secret_name"]

HIDDEN = "***"

FlagStyle = Literal["next", "attached", "either", "all"]
"""Where an option has its value: in the next argument, attached, either, or in all arguments up to the next option."""

PROGRAM_FLAGS: dict[str, dict[str, FlagStyle]] = {
    "mysql": {"-p": "attached"},
    "mysqldump": {"-p": "attached"},
    "mysqladmin": {"-p": "attached"},
    "mariadb": {"-p": "attached"},
    "mariadb-dump": {"-p": "attached"},
    "sshpass": {"-p": "either"},
    "curl": {
        "-u": "either",
        "--user": "next",
        "-U": "either",
        "--proxy-user": "next",
        "-b": "either",
        "--cookie": "next",
    },
    "redis-cli": {"-a": "either"},
    "smbclient": {"-U": "either"},
    "ldapsearch": {"-w": "either"},
    "ldapmodify": {"-w": "either"},
    "mongo": {"-p": "next"},
    "mongosh": {"-p": "next"},
    "sqlcmd": {"-P": "either"},
    "zip": {"-P": "either"},
    "unzip": {"-P": "either"},
    "7z": {"-p": "attached"},
    "7za": {"-p": "attached"},
    "docker": {"-p": "next"},
    "podman": {"-p": "next"},
    "az": {"-p": "next"},
    "openssl": {"-pass": "next", "-passin": "next", "-passout": "next", "-k": "next", "-K": "next"},
    "mosquitto_pub": {"-P": "next"},
    "mosquitto_sub": {"-P": "next"},
    "vllm": {"--api-key": "all"},
}
"""Options that carry a password without saying so. ``docker -p`` also publishes ports: a hidden port is the price."""

TOKEN_SHAPES: dict[str, re.Pattern[str]] = {
    "private key": re.compile(r"-----BEGIN [A-Z ]{0,30}PRIVATE KEY-----[^\0]*"),
    "JSON web token": re.compile(r"\beyJ[\w\-]{6,}+(?:\.[\w\-]*+){1,4}"),
    "Hugging Face": re.compile(r"\b(?:hf|api_org)_[A-Za-z0-9]{10,}+"),
    "GitHub": re.compile(r"\b(?:gh[pousr]_[A-Za-z0-9]{10,}+|github_pat_\w{10,}+)"),
    "GitLab": re.compile(r"\bgl(?:pat|dt|rt|ptt|soat|cbt)-[\w\-.]{10,}+"),
    "OpenAI, Anthropic and similar": re.compile(r"\bsk-[\w\-]{10,}+"),
    "Stripe": re.compile(r"\b[srp]k_(?:live|test)_[A-Za-z0-9]{8,}+"),
    "AWS access key": re.compile(r"\b(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{12,}+"),
    "Slack": re.compile(
        r"\b(?:xox[a-z]|xapp)-[\w\-]{8,}+|hooks\.slack\.com/(?:services|workflows)/[\w/\-]++"
    ),
    "Discord webhook": re.compile(r"\bdiscord(?:app)?\.com/api/webhooks/[\w/\-]++"),
    "Telegram bot": re.compile(r"\b(?:bot)?\d{8,10}:AA[\w\-]{30,}+"),
    "Google": re.compile(r"\b(?:AIza[\w\-]{20,}+|ya29\.[\w\-.]{10,}+|GOCSPX-[\w\-]{10,}+)"),
    "NVIDIA": re.compile(r"\bnvapi-[\w\-]{10,}+"),
    "npm and PyPI": re.compile(r"\b(?:npm_[A-Za-z0-9]{20,}+|pypi-[\w\-]{16,}+)"),
    "Vault": re.compile(r"\bhv[sbr]\.[\w\-]{12,}+"),
    "SendGrid": re.compile(r"\bSG\.[\w\-]{10,}+\.[\w\-]{10,}+"),
    "Replicate, Groq, LangSmith, Tavily": re.compile(
        r"\b(?:r8_[A-Za-z0-9]{20,}+|gsk_[A-Za-z0-9]{20,}+|lsv2_\w{10,}+|tvly-[\w\-]{10,}+)"
    ),
    "Weights & Biases": re.compile(r"\bwandb_v\d_\w{10,}+"),
    "DigitalOcean": re.compile(r"\bdo[opr]_v1_[a-f0-9]{20,}+"),
    "age": re.compile(r"\bAGE-SECRET-KEY-1[A-Z0-9]{10,}+"),
}
"""Well-known tokens by issuer; found anywhere in the text."""

_SPLIT = re.compile(r"[-_.\s]+|(?<=[a-z0-9])(?=[A-Z])")
_STRONG_ENDINGS = (
    "password", "passwd", "passphrase", "passcode", "secret", "token", "apikey", "accesskey", "secretkey",
    "privatekey", "authkey", "credential", "credentials", "passwords", "secrets", "pwd",
)  # fmt: skip
_STRONG_BEGINNINGS = ("password", "passwd", "secret", "credential", "authoriz")
_STRONG_WORDS = frozenset(
    {"bearer", "jwt", "psk", "cookie", "cookies", "sig", "signature", "userpass", "htpasswd"}
)
_WEAK_WORDS = frozenset(
    {"pass", "pw", "auth", "key", "keys", "pat", "sas", "tokens", "creds", "login", "dsn"}
)
# Words of a name after which a weak word means a secret; alone it does so too (``--key x``), but not elsewhere
# (``--sort-key``, ``--single-pass``).
_OWNERS = frozenset({
    "access", "account", "admin", "api", "app", "auth", "aws", "azure", "basic", "bot", "client", "comet",
    "consumer", "db", "database", "deploy", "encrypt", "encryption", "ftp", "gcp", "git", "github", "hf", "hub",
    "http", "hmac", "imap", "ldap", "license", "mail", "master", "mysql", "neptune", "oauth", "openai", "pg",
    "postgres", "private", "proxy", "redis", "refresh", "registry", "root", "rsa", "s3", "service", "session",
    "sftp", "shared", "signing", "smb", "smtp", "ssh", "ssl", "storage", "subscription", "sudo", "tls", "user", "wandb",
    "web", "webdav", "webhook", "x",
})  # fmt: skip
# Language models have tokens that are no secrets: --pad-token, --max-new-tokens, --token-type.
_LANGUAGE_WORDS = frozenset({
    "pad", "eos", "bos", "unk", "mask", "cls", "sep", "special", "image", "video", "audio", "stop", "start",
    "end", "max", "min", "num", "per", "new", "next", "first", "last", "decoder", "prompt", "think", "n",
})  # fmt: skip
_HARMLESS_ENDINGS = frozenset({
    "file", "path", "dir", "id", "ids", "type", "level", "length", "len", "count", "size", "limit", "name",
    "ttl", "expiry", "url", "endpoint", "dropout", "rate", "weight",
})  # fmt: skip


@lru_cache(maxsize=2048)
def is_secret_name(name: str) -> bool:
    """Tell whether an option, variable, header or field of this name holds a secret.

    ``--hf-token``, ``DB_PASS``, ``X-Api-Key`` and ``trainer.wandb.apiKey`` do; ``--tokenizer``, ``--max_tokens``,
    ``--pad-token`` and ``--token-file`` do not.
    """
    stripped = name.lstrip("-+")
    words = [word.lower() for word in _SPLIT.split(stripped) if word]
    if not words:
        return False
    last = words[-1]
    is_variable = stripped.isupper()
    if len(words) > 1 and last in _HARMLESS_ENDINGS:
        return last == "id" and "secret" in words  # Vault's SECRET_ID is a password in all but name
    if last.endswith("token") and len(words) > 1 and words[-2] in _LANGUAGE_WORDS:
        return False
    if any(_is_strong(word) for word in words if word is last or is_variable or not word.endswith("token")):
        return True
    if last in _WEAK_WORDS:
        return len(words) == 1 or is_variable or words[-2] in _OWNERS
    return _is_key(words)


def _is_strong(word: str) -> bool:
    return word.endswith(_STRONG_ENDINGS) or word.startswith(_STRONG_BEGINNINGS) or word in _STRONG_WORDS


def _is_key(words: list[str]) -> bool:
    return any(first in _OWNERS and second in {"key", "keys"} for first, second in pairwise(words))
