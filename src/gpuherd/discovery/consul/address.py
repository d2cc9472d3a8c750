"""Where Consul is asked: the URL of a service, made of the settings and checked once."""

from __future__ import annotations

import re
from urllib.parse import parse_qsl, quote, urlencode, urlsplit, urlunsplit

from msgspec import Struct

from gpuherd.discovery.complaints import quoted
from gpuherd.discovery.settings import ConsulSettings
from gpuherd.model.errors import Misconfigured

__all__ = ["ServiceAddress", "service_address"]

_WHOLE = re.compile(r".*/v1/(catalog|health)/(service|connect)/(?P<service>[^/]+)/?")


class ServiceAddress(Struct, frozen=True, kw_only=True):
    """The address of a service's list, without secrets."""

    url: str
    service: str
    place: str

    def with_query(self, **more: str) -> str:
        """Give the URL with further parameters."""
        parts = urlsplit(self.url)
        query = [*parse_qsl(parts.query, keep_blank_values=True), *more.items()]
        return urlunsplit(parts._replace(query=urlencode(query)))


def service_address(settings: ConsulSettings) -> ServiceAddress:
    """Build the address; ``Misconfigured`` names the key and the remedy, and never repeats a secret."""
    try:
        parts = urlsplit(settings.url.strip())
        host, port = parts.hostname, parts.port
    except ValueError:
        raise Misconfigured(
            f"find.url: {quoted(settings.url)} is not an address; write http://127.0.0.1:8500"
        ) from None
    if parts.username is not None or parts.password is not None:
        raise Misconfigured("find.url: contains a user or password; use token_file instead")
    if parts.scheme not in {"http", "https"} or not host:
        raise Misconfigured(
            f"find.url: {quoted(settings.url)} is not an address; write http://127.0.0.1:8500"
        )
    if settings.tls_ca_file is not None and parts.scheme != "https":
        raise Misconfigured("find.tls_ca_file: cannot be used with http://; write https:// in find.url")
    query = parse_qsl(parts.query, keep_blank_values=True)
    if any(key == "token" for key, _ in query):
        raise Misconfigured("find.url: contains a token; put the token into a file and set token_file")
    # These are ours: a fixed index would never wait.
    query = [(key, value) for key, value in query if key not in {"index", "wait"}]
    path, service = parts.path, settings.service
    if whole := _WHOLE.fullmatch(path):
        service = service or whole["service"]
        if settings.only_healthy:
            path = path.replace("/v1/catalog/", "/v1/health/")
    elif service:
        kind = "health" if settings.only_healthy else "catalog"
        path = f"{path.rstrip('/')}/v1/{kind}/service/{quote(service, safe='')}"
    elif path.strip("/"):
        service = path.rstrip("/").rpartition("/")[2]  # some other address that answers in the same shape
    else:
        raise Misconfigured(
            'find.service: is missing; write service = "gpu", or a url that ends in /v1/catalog/service/gpu'
        )
    if settings.only_healthy and "/v1/health/" in path:
        query.append(("passing", "1"))
    if settings.tag_name is not None:
        query.append(("tag", settings.tag_name))
    if settings.datacenter is not None:
        query.append(("dc", settings.datacenter))
    netloc = f"[{host}]" if ":" in host else host
    if port is not None:
        netloc = f"{netloc}:{port}"
    return ServiceAddress(
        url=urlunsplit((parts.scheme, netloc, path, urlencode(query), "")),
        service=service,
        place=f"consul {service} at {parts.scheme}://{netloc}",
    )
