"""Runs a command and turns whatever happens into one sentence and an exit code.

0 done · 1 the hub cannot be reached, or anything else · 2 the command line is wrong · 3 taken, against the rules, no
such thing or nothing free · 4 not logged in or not allowed · 130 Ctrl-C · 141 nobody reads on.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Sequence

import click

from gpuherd.cli.group import group
from gpuherd.cli.saying import missing_package, say
from gpuherd.model.errors import GpuherdError, Refused

__all__ = ["BROKEN_PIPE", "INTERRUPTED", "run"]

FAILED = 1
INTERRUPTED = 130
BROKEN_PIPE = 141
_COMPLETE = "_GPUHERD_COMPLETE"


def run(arguments: Sequence[str]) -> int:
    """Run ``gpuherd ARGUMENTS`` and give its exit code; all that is expected to go wrong is told here."""
    try:
        code = _ended(arguments)
        if sys.stdout is not None:
            sys.stdout.flush()
    except OSError as error:  # while something was written, or what was written did not fit
        _let_go()
        return _told(error)
    return code


def _load_msgspec() -> None:
    """Load it without ``typing_extensions``, which since Python 3.11 tells it nothing new and takes as long to load."""
    if "typing_extensions" in sys.modules or "msgspec" in sys.modules:
        return
    sys.modules["typing_extensions"] = None  # type: ignore[assignment]
    try:
        import msgspec  # noqa: F401
    finally:
        del sys.modules["typing_extensions"]


def _ended(arguments: Sequence[str]) -> int:
    try:
        if instruction := os.environ.get(_COMPLETE):
            from click.shell_completion import shell_complete

            return shell_complete(group, {}, "gpuherd", _COMPLETE, instruction)
        _load_msgspec()
        with group.make_context("gpuherd", [*arguments]) as context:
            group.invoke(context)
    except click.exceptions.Exit as error:
        return error.exit_code
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except KeyboardInterrupt:
        return INTERRUPTED
    except (click.Abort, EOFError) as error:
        if isinstance(error.__cause__, KeyboardInterrupt):
            return INTERRUPTED
        say("gpuherd: aborted")
        return FAILED
    except GpuherdError as error:
        return _refused(error)
    except ModuleNotFoundError as error:
        missing = missing_package(error)
        if missing is None:
            raise
        say(f"gpuherd: {missing}")
        return FAILED
    return 0


def _refused(error: GpuherdError) -> int:
    from gpuherd.cli.asking import REFUSED, tell
    from gpuherd.client.errors import HubRefused

    if isinstance(error, HubRefused):
        return tell(error)
    say(f"gpuherd: {error}")
    return REFUSED if isinstance(error, Refused) else FAILED


def _told(error: OSError) -> int:
    if error.errno in (errno.EPIPE, errno.ESHUTDOWN):
        return BROKEN_PIPE
    place = error.filename or "the output cannot be written"
    remedy = "; free some space, then try again" if error.errno in (errno.ENOSPC, errno.EDQUOT) else ""
    say(f"gpuherd: {place}: {error.strerror or error}{remedy}")
    return FAILED


def _let_go() -> None:
    """Let the rest of the output go nowhere: Python would complain once more when it ends."""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (OSError, ValueError):
        sys.stdout = None
