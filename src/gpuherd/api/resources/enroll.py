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

    token: Annotated[str, Meta(max_length=200, description="Join token from `gpuherd token create`.")]
    hostname: Annotated[Label, Meta(description="Host name of the machine.")]
    name: Annotated[Label | None, Meta(description="Display name. Default: the host name.")] = None
    credential: Annotated[
        Annotated[str, Meta(max_length=200)] | None,
        Meta(
            description="A secret created by the node: ghn_ and 256 random bits in base64url without padding. With "
            "it, the same request can be sent again if the response is lost, and gets the same "
            "response. Without it, the hub creates one.",
        ),
    ] = None


class EnrolmentResult(Struct, frozen=True, kw_only=True):
    """Identity of the node from now on."""

    node_id: Annotated[str, Meta(description="Id assigned by the hub; unique and permanent.")]
    credential: Annotated[
        str, Meta(description="The node's secret: the one it sent, or a new one, shown only once.")
    ]


def handlers(services: Services) -> list[Any]:
    """Make the handlers of this resource."""

    @post("/enroll", operation_id="enroll", opt=needs(Access.OPEN), summary="Enrol a node", status_code=201)
    async def enroll(data: JSONBody[EnrolmentRequest], request: Request[Any, Any, Any]) -> EnrolmentResult:
        """Exchange a join token for the node's own credential. 403: the token is unknown, used up or expired. 409:
        the name is taken, or the credential belongs to another node. 429: too many failed attempts.
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
