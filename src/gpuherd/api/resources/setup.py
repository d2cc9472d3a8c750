"""POST /api/v1/setup: the set-up link makes the first admin."""

from __future__ import annotations

from typing import Annotated, Any

from litestar import Request, Response, post
from litestar.params import JSONBody
from msgspec import Meta, Struct

from gpuherd.api.access import Access, needs
from gpuherd.api.resources.session import SessionView, logged_in
from gpuherd.api.sender import sender_of
from gpuherd.api.services import Services
from gpuherd.model.text import Label

__all__ = ["SetupRequest", "handlers"]


class SetupRequest(Struct, frozen=True, kw_only=True):
    """The first admin."""

    code: Annotated[str, Meta(max_length=200, description="The code after the # of the set-up link.")]
    name: Annotated[str, Meta(min_length=1, max_length=96, description="Name to log in with.")]
    password: Annotated[str, Meta(max_length=1024, description="At least ten characters.")]
    display_name: Annotated[Label | None, Meta(description="Display name. Default: the name.")] = None


def handlers(services: Services) -> list[Any]:
    """Make the handlers of this resource."""

    @post("/setup", operation_id="setUp", opt=needs(Access.OPEN), summary="Set up", status_code=201)
    async def set_up(request: Request[Any, Any, Any], data: JSONBody[SetupRequest]) -> Response[SessionView]:
        """Create the first admin and log in; the response sets a cookie. 403 ``code_invalid``: the link is unknown,
        used or expired; `gpuherd hub setup-link` prints a new one. 409 ``setup_done``: there is an admin. 403
        ``insecure``: the hub accepts no passwords over plain HTTP.
        """
        sender = sender_of(request)
        services.reception.check_secrecy(sender)
        entered = await services.reception.set_up(
            data.code,
            name=data.name,
            display_name=data.display_name,
            password=data.password,
            sender=sender,
            agent=request.headers.get("user-agent", ""),
        )
        return logged_in(services, entered, sender)

    return [set_up]
