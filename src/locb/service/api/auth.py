"""Authorization: bearer tokens with scopes, and the checks of requests to a service without tokens."""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
from functools import lru_cache

from locb.service import errors


class Tokens:
    """Tokens with their scopes. Only the SHA-256 digests of the tokens are stored.

    Parameters
    ----------
    scopes : dict of str to frozenset of str, optional
        Scopes of each token. Without tokens, every client that reaches the service has all scopes.
    """

    def __init__(self, scopes: dict[str, frozenset[str]] | None = None) -> None:
        self.replace(scopes or {})

    def __bool__(self) -> bool:
        return bool(self._digests)

    def replace(self, scopes: dict[str, frozenset[str]]) -> None:
        """Replace all tokens and their scopes. The next request is checked with the new tokens."""
        self._digests = [(_digest(token.encode()), granted) for token, granted in scopes.items()]

    def granted(self, token: bytes) -> frozenset[str] | None:
        """Return the scopes of a token, or None if the token is unknown.

        The token is compared with all known tokens in constant time, so the response time reveals nothing about it.
        """
        given = _digest(token)
        found = None
        for digest, granted in self._digests:
            if hmac.compare_digest(digest, given):
                found = granted
        return found


def _digest(token: bytes) -> bytes:
    return hashlib.sha256(token).digest()


def authorize(tokens: Tokens, headers: dict[bytes, bytes], scope: str | None) -> None:
    """Check that a request with these headers is allowed.

    If the service has tokens, the request needs a token with this scope, in the header ``Authorization`` or
    ``Ocp-Apim-Subscription-Key``. A route with the scope None needs no token.

    If the service has no tokens, the header ``Host`` must name localhost or a loopback address, and the header
    ``Origin``, which browsers send, must be the origin of the service itself. Otherwise any web page could use the
    service through the browser of its visitor.

    Raises
    ------
    ProblemError
        401 if the token is missing or unknown. 403 if the token does not have the scope, or if one of the two headers
        has another value.
    """
    if not tokens:
        _check_local(headers)
        return
    if scope is None:
        return
    scheme, _, token = headers.get(b"authorization", b"").partition(b" ")
    if scheme.lower() != b"bearer":
        token = headers.get(b"ocp-apim-subscription-key", b"")
    granted = tokens.granted(token.strip())
    if granted is None:
        raise errors.unauthorized()
    if scope not in granted:
        raise errors.forbidden(f"this token does not have the scope {scope!r}; use a token with this scope")


def _check_local(headers: dict[bytes, bytes]) -> None:
    host = headers.get(b"host", b"localhost").decode("latin-1")
    if not is_loopback(_without_port(host)):
        raise errors.forbidden(_not_local("Host", "name localhost or a loopback address", host))
    origin = headers.get(b"origin", b"").decode("latin-1")
    if b"origin" in headers and origin != f"http://{host}":
        raise errors.forbidden(_not_local("Origin", f"be the address of this service, 'http://{host}'", origin))


def _not_local(header: str, allowed: str, value: str) -> str:
    problem = f"the {header} header must {allowed}, not {value!r}"
    return f"this service has no tokens: {problem}; to allow other hosts, start the service with --token-file"


def _without_port(host: str) -> str:
    """Return the host name or address in the value of a Host header, without the port and the brackets of IPv6."""
    if host.startswith("["):
        return host.partition("]")[0].strip("[]")
    return host.partition(":")[0]


@lru_cache(maxsize=256)
def is_loopback(host: str) -> bool:
    """Return whether a host is ``localhost`` or a loopback address. Other host names are not resolved."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False
