"""One check of a password by PAM, in a process of its own: ``python -m gpuherd.auth.pam_child``.

PAM's modules are made for short programs. In the hub one that hangs could not be ended, one that crashes would take
the hub along, and some are not fit for threads (``child_check``).
"""

from __future__ import annotations

import grp
import json
import os
import pwd
import sys
from typing import Any

__all__ = ["main"]

PAM_SILENT = 0x8000
PAM_DISALLOW_NULL_AUTHTOK = 0x0001


def main() -> None:
    """Answer one question."""
    question = json.load(sys.stdin)
    # Modules may print; what they do must not get into the answer.
    answer = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    stage, code, reason = _ask_pam(question["service"], question["name"], question["password"])
    user = _user(question["name"]) if code == 0 else None
    with answer:
        json.dump({"stage": stage, "code": code, "reason": reason, "user": user}, answer)


def _ask_pam(service: str, name: str, password: str) -> tuple[str, int, str]:
    """Give where PAM stopped (``auth`` or ``account``), its code, 0 for success, and its words for that."""
    import pam  # noqa: PLC0415 - an extra; the hub has seen to it that it is there

    asked = pam.PamAuthenticator()
    authenticate, manage = asked.pam_authenticate, asked.pam_acct_mgmt
    stage = "start"

    def authenticate_strictly(handle: Any, flags: int) -> int:
        # Without this flag an account with an empty password lets everyone in, whatever was typed.
        nonlocal stage
        stage = "auth"
        return int(authenticate(handle, flags | PAM_DISALLOW_NULL_AUTHTOK | PAM_SILENT))

    def manage_account(handle: Any, flags: int) -> int:
        nonlocal stage
        stage = "account"
        return int(manage(handle, flags | PAM_DISALLOW_NULL_AUTHTOK | PAM_SILENT))

    asked.pam_authenticate, asked.pam_acct_mgmt = authenticate_strictly, manage_account
    # No credentials are set: they belong to a session on this machine, and there is none.
    asked.authenticate(name, password, service=service, resetcreds=False)
    return stage, int(asked.code), str(asked.reason)


def _user(name: str) -> dict[str, Any] | None:
    """Tell who the system says this is; none for someone whom only PAM knows."""
    try:
        entry = pwd.getpwnam(name)
    except KeyError:
        return None
    groups = []
    for number in os.getgrouplist(entry.pw_name, entry.pw_gid):
        try:
            groups.append(grp.getgrgid(number).gr_name)
        except KeyError:
            continue
    return {
        "name": entry.pw_name,
        "uid": entry.pw_uid,
        "full_name": entry.pw_gecos.partition(",")[0],
        "groups": groups,
    }


if __name__ == "__main__":
    main()
