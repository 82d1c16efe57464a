"""Authorization: tokens with scopes. ``middleware`` checks the requests to a service without tokens."""

from __future__ import annotations

import hashlib
import hmac

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

    Attributes
    ----------
    required : bool
        Whether requests need a token, because there are tokens.
    """

    def __init__(self, scopes: dict[str, frozenset[str]] | None = None) -> None:
        self.replace(scopes or {})

    def replace(self, scopes: dict[str, frozenset[str]]) -> None:
        """Replace all tokens and their scopes. The next request is checked with the new tokens."""
        self._digests = [(token_digest(token), granted) for token, granted in scopes.items()]
        self.required = bool(scopes)

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
    """Check whether the tokens of requests allow them.

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
        """Check that a request has a token with this scope.

        The token is in the header ``Authorization`` or ``Ocp-Apim-Subscription-Key``. A route with the scope None needs
        no token.

        Raises
        ------
        ProblemError
            401 if the token is missing or unknown. 403 if the token does not have the scope. 429 if the client has sent
            too many unknown tokens.
        """
        headers: dict[bytes, bytes] = request["headers_by_name"]
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
