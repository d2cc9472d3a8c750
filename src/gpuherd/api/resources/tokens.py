"""/api/v1/account/tokens: one's own keys for programs."""

from __future__ import annotations

from typing import Annotated, Any

from litestar import Request, delete, get, post
from litestar.params import JSONBody, PathParameter

from gpuherd.api.access import Access, needs, viewer_of
from gpuherd.api.people_views import CreatedToken, KeptToken, TokenRequest
from gpuherd.api.services import Services

__all__ = ["handlers"]

AnyRequest = Request[Any, Any, Any]


def handlers(services: Services) -> list[Any]:
    """Make the handlers of this resource."""

    @get("/account/tokens", operation_id="listTokens", opt=needs(Access.SELF), summary="Your API tokens")
    async def list_tokens(request: AnyRequest) -> list[KeptToken]:
        """Your valid tokens, the newest first, without their secrets."""
        return await services.people.tokens(viewer_of(request))

    @post(
        "/account/tokens",
        operation_id="createToken",
        opt=needs(Access.SELF),
        summary="Create an API token",
        status_code=201,
    )
    async def create_token(request: AnyRequest, data: JSONBody[TokenRequest]) -> CreatedToken:
        """Create a token for a program. The hub stores only a digest, so the token is shown only once. 422
        ``scope_needs_role``: your role does not allow this scope. 409 ``too_many_tokens``.
        """
        return await services.people.create_token(viewer_of(request), data)

    @delete(
        "/account/tokens/{token_id:str}",
        operation_id="endToken",
        opt=needs(Access.SELF),
        summary="End an API token",
        status_code=204,
    )
    async def end_token(
        request: AnyRequest, token_id: Annotated[str, PathParameter(description="The token's id.")]
    ) -> None:
        """End a token at once. 404: you have none with this id."""
        await services.people.end_token(viewer_of(request), token_id)

    return [list_tokens, create_token, end_token]
