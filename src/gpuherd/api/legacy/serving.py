"""One request from beginning to end: a deadline, and an answer in the API's one shape whatever goes wrong."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable

from gpuherd.api.asgi import Headers, Message, Scope, Send, refuse
from gpuherd.api.errors import HttpError, unexpected

__all__ = ["Answer", "serve"]

REQUEST_SECONDS = 15.0


class Answer:
    """A ``send`` that knows whether the answer has begun, and which headers an error gets, too."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self.has_begun = False
        self.headers: Headers = []

    async def __call__(self, message: Message) -> None:
        self.has_begun = True
        await self._send(message)


async def serve(scope: Scope, answer: Answer, work: Awaitable[None]) -> None:
    """Do the work of a request; an error becomes its answer if there is none yet."""
    try:
        async with asyncio.timeout(REQUEST_SECONDS):
            await work
            return
    except HttpError as raised:
        error = raised
    except TimeoutError:
        error = HttpError(408, "timeout", "the request took too long")
    except Exception as raised:  # noqa: BLE001 - the web server would swallow it silently
        error = unexpected(raised)
    if not answer.has_begun:
        error.headers.update({name.decode(): value.decode() for name, value in answer.headers})
        await refuse(scope, answer, error)
