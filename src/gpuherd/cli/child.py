"""A command that runs in our place: it has the terminal, gets our signals, and its end is ours."""

from __future__ import annotations

import errno
import os
import signal
from collections.abc import Mapping, Sequence

from gpuherd.model.errors import Failed

__all__ = ["CANNOT_RUN", "NOT_FOUND", "Child", "NotStarted"]

CANNOT_RUN = 126
NOT_FOUND = 127
_FROM_KERNEL = 0x80
"""``si_code`` of what the terminal sends: every process in the foreground gets it, the command as well as we."""
_NOT_FORWARDED = frozenset(
    {
        signal.SIGKILL,
        signal.SIGSTOP,
        signal.SIGCHLD,
        # The terminal stops and continues us both.
        signal.SIGTSTP,
        signal.SIGTTIN,
        signal.SIGTTOU,
        signal.SIGCONT,
        # Our own faults.
        signal.SIGSEGV,
        signal.SIGBUS,
        signal.SIGFPE,
        signal.SIGILL,
        signal.SIGTRAP,
        signal.SIGABRT,
        signal.SIGSYS,
        signal.SIGPIPE,
        signal.SIGXFSZ,
    }
)
_CHANGED_BY_PYTHON = (signal.SIGPIPE, signal.SIGXFSZ)
LOOK_SECONDS = 1.0
"""So often it is looked whether the command has ended: SIGCHLD may go to another thread, and is lost there."""


class NotStarted(Failed):
    """The command cannot be run; ``exit_code`` is the one that env(1) gives for it."""

    def __init__(self, message: str, exit_code: int) -> None:
        super().__init__(message)
        self.exit_code = exit_code


class Child:
    """From ``__init__`` on the command runs; signals to this process are kept for ``wait``.

    No other thread may let them in: what came while ``wait`` does not look would go astray there. So threads are
    started with signals blocked, or after this.
    """

    def __init__(self, command: Sequence[str], environment: Mapping[str, str]) -> None:
        """Start it; ``NotStarted`` if it cannot be. What is ignored here, as under nohup, is ignored there."""
        self.forwarded = {
            number
            for number in signal.valid_signals() - _NOT_FORWARDED
            if signal.getsignal(number) != signal.SIG_IGN
        }
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # if ignored, nobody would learn how it ended
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, {*self.forwarded, signal.SIGCHLD})
        try:
            self.pid = os.posix_spawnp(
                command[0],
                list(command),
                dict(environment),
                setsigmask=mask,
                setsigdef=_CHANGED_BY_PYTHON,
            )
        except OSError as error:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
            missing = error.errno in (errno.ENOENT, errno.ENOTDIR)
            raise NotStarted(
                f"{command[0]} cannot be run ({error.strerror})", NOT_FOUND if missing else CANNOT_RUN
            ) from None

    def wait(self) -> int:
        """Pass signals on until it ends; give its exit code, or 128 + n if it died of signal n."""
        awaited = {*self.forwarded, signal.SIGCHLD}
        while True:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                code = os.waitstatus_to_exitcode(status)
                return code if code >= 0 else 128 - code
            told = signal.sigtimedwait(awaited, LOOK_SECONDS)
            if told is not None and told.si_signo != signal.SIGCHLD and told.si_code != _FROM_KERNEL:
                os.kill(self.pid, told.si_signo)  # not reaped yet, so the number is still its own

    def forget_signals(self) -> None:
        """Drop what came for the command after its end, and let signals through again."""
        while signal.sigtimedwait(self.forwarded, 0) is not None:
            pass
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {*self.forwarded, signal.SIGCHLD})
