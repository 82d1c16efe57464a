"""Requests, retries and responses of the client, for blocking and asynchronous clients.

A call is a generator. It yields a ``Request`` to send or a number of seconds to wait, and receives the response or the
connection error. ``Client`` and ``AsyncClient`` run the same generators: ``Client`` blocks, ``AsyncClient`` awaits.
"""

from __future__ import annotations

import json
import random
import time
from abc import ABC, abstractmethod
from collections.abc import Generator, Mapping
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from pathlib import Path
from typing import IO, Any, NamedTuple, Self, TypeAlias, TypeVar

import httpx

RETRY_STATUSES = frozenset((429, 502, 503, 504))
CONNECTION_ERRORS = (httpx.NetworkError, httpx.TimeoutException, httpx.RemoteProtocolError)
MIN_BACKOFF, MAX_BACKOFF = 0.1, 5.0  # seconds: first and longest pause, multiplied by a random factor from 0.5 to 1
MAX_EXCERPT = 200  # bytes of an unexpected body that an error message shows

T = TypeVar("T")


class Response(dict[str, Any]):
    """JSON object of a response. Its fields are also attributes: ``decision["arm"]`` or ``decision.arm``."""

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"the response has no field {name!r}, only {', '.join(self)}") from None


class ServiceError(Exception):
    """Failure of a request.

    Attributes
    ----------
    status : int or None
        HTTP status; None if no response arrived.
    title, detail : str
        Kind of the problem, and what was wrong.
    problem : Response
        All fields of the problem response (RFC 9457); empty if no response arrived.
    in_doubt : bool
        Whether an earlier attempt of the same request may have succeeded, although its response did not arrive.
    """

    def __init__(
        self, status: int | None, title: str, detail: str = "", problem: Mapping[str, Any] | None = None
    ) -> None:
        super().__init__(status, title, detail)
        self.status, self.title, self.detail = status, title, detail
        self.problem = Response(problem or {})
        self.in_doubt = False

    def __str__(self) -> str:
        summary = self.title if self.status is None else f"{self.status} {self.title}"
        return f"{summary}: {self.detail}" if self.detail else summary


class Request(NamedTuple):
    """HTTP request to send."""

    method: str
    url: str
    content: bytes | None
    timeout: float  # seconds
    into: Path | None  # file that receives the body of a successful response

    def httpx_arguments(self) -> dict[str, Any]:
        """Return the arguments of ``httpx.Client.stream``."""
        headers = {} if self.content is None else {"Content-Type": "application/json"}
        return {
            "method": self.method,
            "url": self.url,
            "content": self.content,
            "headers": headers,
            "timeout": self.timeout,
        }


class RawResponse:
    """Status, headers and body of an HTTP response.

    Parameters
    ----------
    response : httpx.Response
        Response whose body has not been read.
    into : Path or None
        File that receives the body if the status is 200; None keeps the body in memory.
    """

    def __init__(self, response: httpx.Response, into: Path | None) -> None:
        self.status, self.headers, self.body = response.status_code, response.headers, bytearray()
        self._file: IO[bytes] | None = None if into is None or self.status != 200 else into.open("wb")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            self._file.close()

    def add(self, chunk: bytes) -> None:
        """Append a chunk of the body."""
        if self._file is not None:
            self._file.write(chunk)
        else:
            self.body += chunk


# Yields a request or a pause in seconds, receives the response or the exception, and returns the result of the call.
Exchange: TypeAlias = Generator[Request | float, RawResponse | Exception | None, T]


class BaseClient(ABC):
    """Base of ``Client`` and ``AsyncClient``: address, timeouts and retries. The parameters are those of ``Client``."""

    def __init__(
        self,
        url: str,
        *,
        token: str | None = None,
        timeout: float = 10.0,
        retries: int = 5,
        total: float = 60.0,
        **options: Any,
    ) -> None:
        if not url.startswith(("http://", "https://")):
            raise ValueError(f"url must start with http:// or https://, such as http://127.0.0.1:8080, not {url!r}")
        if retries < 0:
            raise ValueError(f"retries must be at least 0, not {retries!r}")
        for name, seconds in (("timeout", timeout), ("total", total)):
            if not seconds > 0.0:
                raise ValueError(f"{name} must be a number of seconds above 0, not {seconds!r}")
        self.url, self.timeout, self.retries, self.total = url.rstrip("/"), timeout, retries, total
        headers = {"User-Agent": "locb-client", "Accept": "application/json, */*;q=0.5"}
        if token is not None:
            headers["Authorization"] = f"Bearer {token}"
        self._connect(**{**options, "headers": headers | dict(options.get("headers", {}))})

    @abstractmethod
    def _connect(self, **options: Any) -> None:
        """Create the httpx client."""

    def request(
        self, method: str, path: str, body: Any = None, *, into: Path | None = None, retries: int | None = None
    ) -> Exchange[RawResponse]:
        """Send a request, repeat it after failures that can be retried, and return the successful response.

        No further attempt is made after ``retries`` retries, or if it would start after the total time of the client.

        Parameters
        ----------
        method, path : str
            HTTP method, and path with the query string.
        body : object, optional
            Value that is encoded as JSON once, so that all attempts send the same bytes.
        into : Path or None, default None
            File that receives the body of a successful response.
        retries : int or None, default None
            Maximum number of attempts after the first; None means the value of the client.

        Raises
        ------
        ServiceError
            If the last attempt failed.
        """
        content = None if body is None else _encode(body)
        retries = self.retries if retries is None else retries
        deadline = time.monotonic() + self.total
        attempt, in_doubt = 0, False
        while True:
            remaining = max(deadline - time.monotonic(), 0.001)
            response = yield Request(method, self.url + path, content, min(self.timeout, remaining), into)
            attempt += 1
            if isinstance(response, RawResponse) and response.status not in RETRY_STATUSES:
                break
            in_doubt |= not isinstance(response, RawResponse) or response.status >= 500
            pause = _backoff(attempt, response)
            if attempt > retries or time.monotonic() + pause >= deadline:
                break
            yield pause
        if isinstance(response, RawResponse):
            if 200 <= response.status < 300:
                return response
            error = _error_from_response(response)
            error.in_doubt = in_doubt
            raise error
        attempts = "" if attempt == 1 else f" ({attempt} attempts)"
        reason = str(response) or type(response).__name__
        detail = f"{self.url}: {reason}{attempts}; check that the service is running"
        raise ServiceError(None, "no response", detail) from response

    def request_json(self, method: str, path: str, body: Any = None, *, retries: int | None = None) -> Exchange[Any]:
        """Send a request in the same way as ``request``, and return the response, decoded from JSON."""
        response = yield from self.request(method, path, body, retries=retries)
        try:
            return json.loads(bytes(response.body), object_hook=Response)
        except ValueError:
            raise ServiceError(response.status, "the response is not JSON", _excerpt(response)) from None


def _to_builtin(value: Any) -> Any:
    """Convert a NumPy array or scalar to lists and numbers."""
    if hasattr(value, "tolist"):
        return value.tolist()
    raise ValueError


def _encode(body: Any) -> bytes:
    try:
        return json.dumps(body, default=_to_builtin, allow_nan=False).encode()
    except (TypeError, ValueError):
        raise ValueError(_describe_invalid(body, "the request")) from None


def _describe_invalid(value: Any, path: str) -> str:
    """Return an error message that names the first element that JSON cannot represent."""
    inner = value.items() if isinstance(value, Mapping) else enumerate(value) if isinstance(value, list | tuple) else ()
    for key, element in inner:
        try:
            json.dumps({key: element}, default=_to_builtin, allow_nan=False)
        except (TypeError, ValueError):
            return _describe_invalid(element, f"{path}[{key!r}]")
    return f"{path} must be a finite number, string, boolean, list or dictionary, not {value!r}"


def _backoff(attempt: int, response: RawResponse | Exception | None) -> float:
    """Return the seconds to wait after an attempt: exponentially more per attempt, and at least ``Retry-After``."""
    jitter = random.uniform(0.5, 1.0)  # noqa: S311 - not a secret
    pause = min(MIN_BACKOFF * 2.0 ** min(attempt - 1, 30), MAX_BACKOFF) * jitter
    header = response.headers.get("Retry-After", "") if isinstance(response, RawResponse) else ""
    try:
        retry_after = float(header) if header.isdigit() else parsedate_to_datetime(header).timestamp() - time.time()
    except ValueError:
        return pause
    return max(pause, retry_after)


def _excerpt(response: RawResponse) -> str:
    return bytes(response.body[:MAX_EXCERPT]).decode("utf-8", "replace")


def _error_from_response(response: RawResponse) -> ServiceError:
    try:
        problem = json.loads(bytes(response.body), object_hook=Response)
    except ValueError:
        problem = None
    problem = problem if isinstance(problem, dict) else {"detail": _excerpt(response)}
    return error_from_problem({**problem, "status": response.status})


def error_from_problem(problem: Mapping[str, Any]) -> ServiceError:
    """Return the exception for a problem response (RFC 9457)."""
    status = int(problem["status"])
    try:
        phrase = HTTPStatus(status).phrase
    except ValueError:
        phrase = "error"
    return ServiceError(status, str(problem.get("title", phrase)), str(problem.get("detail", "")), problem)
