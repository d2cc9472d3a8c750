"""POST /api/v1/enroll: a join token buys a node its credential."""

from __future__ import annotations

from typing import Annotated, Any

from litestar import Request, post
from litestar.params import JSONBody
from msgspec import Meta, Struct

from gpuherd.api.access import Access, needs
from gpuherd.api.sender import sender_of
from gpuherd.api.services import Services
from gpuherd.model.text import Label

__all__ = ["EnrolmentRequest", "EnrolmentResult", "handlers"]


class EnrolmentRequest(Struct, frozen=True, kw_only=True):
    """A machine that wants to become a node."""

    token: Annotated[str, Meta(max_length=200, description="Join token from `gpuherd hub token create`.")]
    hostname: Annotated[Label, Meta(description="What the machine calls itself.")]
    name: Annotated[Label | None, Meta(description="Name to be shown; default is the hostname.")] = None
    credential: Annotated[
        Annotated[str, Meta(max_length=200)] | None,
        Meta(
            description="A secret that the node has made for itself: ghn_ and 256 random bits in base64url without "
            "padding. With it the same request may be sent again, should its answer be lost, and is answered alike. "
            "Without it the hub makes one.",
        ),
    ] = None


class EnrolmentResult(Struct, frozen=True, kw_only=True):
    """Who the node is to the hub from now on."""

    node_id: Annotated[str, Meta(description="The id the hub has given; unique and for ever.")]
    credential: Annotated[
        str, Meta(description="The node's secret: the one it brought, or a new one that is shown this once.")
    ]


def handlers(services: Services) -> list[Any]:
    """Make the handlers of this resource."""

    @post("/enroll", operation_id="enroll", opt=needs(Access.OPEN), summary="Become a node", status_code=201)
    async def enroll(data: JSONBody[EnrolmentRequest], request: Request[Any, Any, Any]) -> EnrolmentResult:
        """Exchange a join token for a credential of this node's own.

        403: the token is unknown, spent or expired. 409: the name is taken, or the credential is another node's.
        429: too many failed attempts.
        """
        node = await services.enrol(
            token=data.token,
            hostname=data.hostname,
            name=data.name,
            peer=sender_of(request).address,  # behind a listed proxy not all nodes are one
            credential=data.credential,
        )
        return EnrolmentResult(node_id=node.node_id, credential=node.credential)

    return [enroll]
