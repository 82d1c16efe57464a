"""Authorization: bearer tokens with scopes, and the checks of requests to a service without tokens."""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
from functools import lru_cache

from starlette.types import Scope

from locb.service import errors
from locb.service.api.limits import MAX_CLIENTS, FailedTokens
from locb.service.api.token_file import token_digest
from locb.service.connections import client_network


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
        self._digests = [(token_digest(token), granted) for token, granted in scopes.items()]

    def granted(self, token: bytes) -> frozenset[str] | None:
        """Return the scopes of a token, or None if the token is unknown."""
        return self.granted_to(hashlib.sha256(token).digest())

    def granted_to(self, given: bytes) -> frozenset[str] | None:
        """Return the scopes of the token with this digest, or None if the token is unknown.

        The digest is compared with those of all tokens in constant time, so the response time reveals no known digest.
        """
        found = None
        for digest, granted in self._digests:
            if hmac.compare_digest(digest, given):
                found = granted
        return found


class Authorizer:
    """Check whether requests are allowed.

    Parameters
    ----------
    tokens : Tokens
        Tokens that clients may use.
    max_failed_tokens : int
        Number of requests with an unknown token per minute and client address, after which the service refuses tokens
        that were not accepted from this address before. A client with an accepted token is therefore not affected by
        other clients with the same address, for example behind a proxy.
    """

    def __init__(self, tokens: Tokens, max_failed_tokens: int) -> None:
        self._tokens = tokens
        self._failures = FailedTokens(max_failed_tokens)
        self._used: set[tuple[str, bytes]] = set()  # client addresses with the valid tokens (digests) they have used

    def check(self, request: Scope, scope: str | None) -> None:
        """Check that a request is allowed.

        If the service has tokens, the request needs a token with this scope, in the header ``Authorization`` or
        ``Ocp-Apim-Subscription-Key``. A route with the scope None needs no token.

        If the service has no tokens, the header ``Host`` must name localhost or a loopback address, and the header
        ``Origin``, which browsers send, must be the origin of the service itself. Otherwise any web page could use the
        service through the browser of its visitor.

        Raises
        ------
        ProblemError
            401 if the token is missing or unknown. 403 if the token does not have the scope, or if one of the two
            headers has another value. 429 if the client has sent too many unknown tokens.
        """
        headers: dict[bytes, bytes] = request["headers_by_name"]
        if not self._tokens:
            _check_local(headers)
            return
        if scope is None:
            return
        scheme, _, token = headers.get(b"authorization", b"").partition(b" ")
        if scheme.lower() != b"bearer":
            token = headers.get(b"ocp-apim-subscription-key", b"")
        granted = self._granted(token.strip(), client_network(request["client"][0]) if request["client"] else "")
        if scope not in granted:
            raise errors.forbidden(f"this token does not have the scope {scope!r}; use a token with this scope")

    def _granted(self, token: bytes, client: str) -> frozenset[str]:
        if not token:
            raise errors.unauthorized()
        digest = hashlib.sha256(token).digest()
        granted = self._tokens.granted_to(digest)
        used = client, digest
        if used not in self._used:
            seconds = self._failures.retry_after(client)
            if seconds:
                raise errors.too_many_failed_tokens(client, seconds)
            if granted is not None:
                if len(self._used) >= MAX_CLIENTS:
                    self._used.clear()
                self._used.add(used)
        if granted is None:
            self._failures.add(client)
            raise errors.unauthorized()
        return granted


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
