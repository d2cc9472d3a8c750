"""The exception tree: one root, four ways to fail.

*Unavailable* is a property of the place (no driver here) and only worth a debug line; *Failed* may pass and is
retried, counted and shown; *Misconfigured* stops the start; *Refused* is the answer to bad or forbidden input.
"""

import os

__all__ = ["Failed", "GpuherdError", "Misconfigured", "Refused", "Unavailable", "system_reason"]


class GpuherdError(Exception):
    """Every error gpuherd raises on purpose; its text is a sentence fit to be shown to a person."""


class Unavailable(GpuherdError):  # noqa: N818 - reads as a state, like the three below
    """This machine lacks what is asked for (no driver, no tool); the text says what and how to get it."""


class Failed(GpuherdError):  # noqa: N818
    """Something that usually works did not; worth another try."""


class Misconfigured(GpuherdError):  # noqa: N818
    """The configuration cannot be used; the text names the file, the key and the remedy."""


class Refused(GpuherdError):  # noqa: N818
    """Input that breaks a rule. ``code`` is stable and meant for programs, the text for people."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


def system_reason(error: OSError) -> str:
    """Give the system's words for what went wrong; asyncio puts the address in their place, aiohttp wraps that."""
    cause: OSError = getattr(error, "os_error", error)
    words = cause.strerror or str(cause) or type(cause).__name__
    if words.startswith("Connect call failed") and cause.errno is not None:
        return os.strerror(cause.errno)
    return words
