"""Which step of the way a failure belongs to. Pure: codes and sentences in, names of steps out."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from gpuherd.model.targets import NodeWay

__all__ = ["STAGES", "broken_stage", "in_few_words", "with_remedy"]

STAGES: dict[NodeWay, tuple[str, ...]] = {
    "ssh": ("key", "login", "command", "parse"),
    "pull": ("key", "answer", "parse"),
    "node_info": ("key", "answer", "parse"),
    "xmlrpc": ("answer", "parse"),
    "http_files": ("answer", "parse"),
}
"""What follows after connecting, until a report is there."""

_BY_CODE = {
    "host_key_unknown": "key",
    "host_key_changed": "key",
    "host_key_revoked": "key",
    "server_busy": "key",
    "tls_failed": "key",
    "node_unproven": "key",
    "hub_refused": "key",
    "other_version": "key",
    "wrong_password": "key",
    "ssh_config": "login",
    "login_refused": "login",
    "session_refused": "command",
    "command_refused": "command",
    "too_large": "answer",
    "no_data": "answer",
    "replaced": "answer",
}
_BY_PHASE = {
    "waiting for the server's greeting": "key",
    "exchanging keys": "key",
    "logging in": "login",
    "opening a session": "command",
    "waiting for the first line of the script": "command",
}
"""How the SSH way names the phase in which a deadline struck or a server hung up."""
_UNANSWERED = re.compile(
    r"with \d{3}|compressed response|speak (?:valid )?HTTP|redirects|HTTP \d{3}|without a response|is not a gpuherd"
)
_WORDS = {
    "unreachable": "cannot be reached",
    "timeout": "no response in time",
    "link_lost": "connection lost",
    "login_refused": "login refused",
    "host_key_unknown": "host key unknown",
    "host_key_changed": "host key CHANGED",
    "host_key_revoked": "host key revoked",
    "server_busy": "too many logins at once",
    "ssh_config": "SSH configuration cannot be used",
    "session_refused": "no session",
    "command_refused": "the script was not run",
    "wrong_password": "wrong password",
    "hub_refused": "the agent refuses this hub",
    "node_unproven": "the agent has another secret",
    "tls_failed": "TLS fails",
    "other_version": "another version",
    "garbled": "not valid",
    "too_large": "too large",
    "no_data": "nothing new",
    "replaced": "taken over by another hub",
}
_REMEDIES: dict[tuple[NodeWay, str], str] = {
    ("ssh", "link_lost"): "check sshd's log there (`journalctl -u ssh`)",
    ("ssh", "garbled"): "check what the login shell prints there",
    ("pull", "link_lost"): "check the agent's log there (`journalctl -u gpuherd-agent`)",
    ("pull", "garbled"): "install the same version of gpuherd on both sides",
    ("node_info", "link_lost"): "check what node_info.py prints there",
    ("node_info", "garbled"): "does node_info.py listen on this port?",
    ("xmlrpc", "link_lost"): "check what the RPC server prints there",
    ("xmlrpc", "garbled"): "does the old monitor's RPC server listen on this port?",
    ("http_files", "link_lost"): "check what the web server on the node prints",
    ("http_files", "garbled"): "check the files that the node serves",
    (
        "xmlrpc",
        "no_data",
    ): "check what the old monitor's RPC server prints there, or whether it is another server",
}
"""What to do where the way itself does not say so."""


def broken_stage(way: NodeWay, code: str, message: str, reached: Collection[str]) -> str:
    """Name the stage at which following a node failed. ``reached``: the stages that are known to have worked."""
    stages = STAGES[way]
    left = _after(stages, reached)
    if not left:
        return stages[-1]
    phase = next((stage for words, stage in _BY_PHASE.items() if words in message), None)
    named = _BY_CODE.get(code) or phase or (_of_nonsense(stages, message) if code == "garbled" else None)
    if named == "answer" and "command" in stages:
        named = "command"  # over SSH a command is what answers
    return named if named is not None and named in left else left[0]


def _after(stages: Sequence[str], reached: Collection[str]) -> Sequence[str]:
    """Give the stages behind the last one reached: whoever got so far has passed the ones before, too."""
    last = max((stages.index(stage) for stage in reached if stage in stages), default=-1)
    return stages[last + 1 :]


def _of_nonsense(stages: Sequence[str], message: str) -> str:
    """Tell an answer that is none from one whose content is not understood."""
    if "key" in stages and "is not a gpuherd" in message:
        return "key"
    return "answer" if _UNANSWERED.search(message) else "parse"


def in_few_words(code: str) -> str:
    """Say what a code means, for the line of its step."""
    return _WORDS.get(code, code.replace("_", " "))


def with_remedy(way: NodeWay, code: str, message: str) -> str:
    """Complete a sentence that says what is wrong but not what to do."""
    remedy = _REMEDIES.get((way, code))
    has_one = ";" in message or message.rstrip().endswith(("?", "`"))
    return message if remedy is None or has_one else f"{message}; {remedy}"
