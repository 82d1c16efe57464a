"""One request and its answer, with as many attempts as it takes; nothing here waits."""

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

AGAIN = frozenset((429, 502, 503, 504))
LOST = (httpx.NetworkError, httpx.TimeoutException, httpx.RemoteProtocolError)
PAUSES = (0.1, 5.0)  # seconds before the second attempt, and at most; each is drawn from its upper half

T = TypeVar("T")


class Answer(dict[str, Any]):
    """What the service says: a dictionary whose entries are also attributes, ``answer["arm"]`` or ``answer.arm``."""

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"the answer has no {name!r}, only {', '.join(self)}") from None


class ServiceError(Exception):
    """The service said no, or nothing. ``status`` is None where it said nothing."""

    def __init__(
        self, status: int | None, title: str, detail: str = "", problem: Mapping[str, Any] | None = None
    ) -> None:
        super().__init__(status, title, detail)
        self.status, self.title, self.detail = status, title, detail
        self.problem = Answer(problem or {})  # all that was said, after RFC 9457

    def __str__(self) -> str:
        told = self.title if self.status is None else f"{self.status} {self.title}"
        return f"{told}: {self.detail}" if self.detail else told


class Request(NamedTuple):
    """What to send."""

    method: str
    url: str
    content: bytes | None
    timeout: float
    into: Path | None

    def sent(self) -> dict[str, Any]:
        """Arguments of httpx."""
        headers = {} if self.content is None else {"Content-Type": "application/json"}
        return {
            "method": self.method,
            "url": self.url,
            "content": self.content,
            "headers": headers,
            "timeout": self.timeout,
        }


class Reply:
    """What came back; a body that was asked into a file goes there."""

    def __init__(self, response: httpx.Response, into: Path | None) -> None:
        self.status, self.headers, self.body = response.status_code, response.headers, bytearray()
        self._file: IO[bytes] | None = None if into is None or self.status != 200 else into.open("wb")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            self._file.close()

    def add(self, chunk: bytes) -> None:
        """Some more of the body."""
        if self._file is not None:
            self._file.write(chunk)
        else:
            self.body += chunk


# An exchange says what to send and how long to wait, and is told what came of it: whoever runs it does the waiting.
Steps: TypeAlias = Generator[Request | float, Reply | Exception | None, T]


class Service(ABC):
    """Where it is, and how often to try."""

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
            raise ValueError(f"url must be like http://127.0.0.1:8080, not {url!r}")
        if retries < 0:
            raise ValueError(f"retries must be at least 0, not {retries!r}")
        for name, seconds in (("timeout", timeout), ("total", total)):
            if not seconds > 0.0:
                raise ValueError(f"{name} must be above 0, not {seconds!r}")
        self.url, self.timeout, self.retries, self.total = url.rstrip("/"), timeout, retries, total
        headers = {"User-Agent": "locb-client", "Accept": "application/json, */*;q=0.5"}
        if token is not None:
            headers["Authorization"] = f"Bearer {token}"
        self._connect(**{**options, "headers": headers | dict(options.get("headers", {}))})

    @abstractmethod
    def _connect(self, **options: Any) -> None:
        """Make the client of httpx that waits, or that is awaited."""

    def exchange(
        self, method: str, path: str, body: Any = None, *, into: Path | None = None, retries: int | None = None
    ) -> Steps[Reply]:
        """Send, the very same bytes again if need be, until there is an answer that counts."""
        content = None if body is None else _encoded(body)
        retries = self.retries if retries is None else retries
        end = time.monotonic() + self.total
        attempt = 0
        while True:
            left = max(end - time.monotonic(), 0.001)
            reply = yield Request(method, self.url + path, content, min(self.timeout, left), into)
            attempt += 1
            if isinstance(reply, Reply) and reply.status not in AGAIN:
                break
            pause = _pause(attempt, reply)
            if attempt > retries or time.monotonic() + pause >= end:
                break
            yield pause
        if isinstance(reply, Reply):
            if 200 <= reply.status < 300:
                return reply
            raise _problem(reply)
        tried = "" if attempt == 1 else f", tried {attempt} times"
        raise ServiceError(None, "no answer", f"{self.url}: {str(reply) or type(reply).__name__}{tried}") from reply

    def ask(self, method: str, path: str, body: Any = None, *, retries: int | None = None) -> Steps[Any]:
        """An exchange whose answer is JSON."""
        reply = yield from self.exchange(method, path, body, retries=retries)
        try:
            return json.loads(bytes(reply.body), object_hook=Answer)
        except ValueError:
            raise ServiceError(reply.status, "not JSON", _shown(reply)) from None


def _plain(value: Any) -> Any:
    """What JSON can hold of an array or a number of NumPy."""
    if hasattr(value, "tolist"):
        return value.tolist()
    raise ValueError


def _encoded(body: Any) -> bytes:
    try:
        return json.dumps(body, default=_plain, allow_nan=False).encode()
    except (TypeError, ValueError):
        raise ValueError(_culprit(body, "the request")) from None


def _culprit(value: Any, place: str) -> str:
    """Where in it something is that JSON cannot hold."""
    inner = value.items() if isinstance(value, Mapping) else enumerate(value) if isinstance(value, list | tuple) else ()
    for key, part in inner:
        try:
            json.dumps({key: part}, default=_plain, allow_nan=False)
        except (TypeError, ValueError):
            return _culprit(part, f"{place}[{key!r}]")
    return f"{place} must be finite numbers, strings, booleans, lists or dictionaries, not {value!r}"


def _pause(attempt: int, reply: Reply | Exception | None) -> float:
    """Seconds to wait after so many attempts: as long as the service asks for, or ever longer."""
    first, longest = PAUSES
    pause = min(first * 2.0 ** min(attempt - 1, 30), longest) * random.uniform(0.5, 1.0)  # noqa: S311 - no secret
    asked = reply.headers.get("Retry-After", "") if isinstance(reply, Reply) else ""
    try:
        return max(pause, float(asked) if asked.isdigit() else parsedate_to_datetime(asked).timestamp() - time.time())
    except ValueError:
        return pause


def _shown(reply: Reply) -> str:
    return bytes(reply.body[:200]).decode("utf-8", "replace")


def _problem(reply: Reply) -> ServiceError:
    try:
        told = json.loads(bytes(reply.body), object_hook=Answer)
    except ValueError:
        told = None
    told = told if isinstance(told, dict) else {"detail": _shown(reply)}
    return error_of({**told, "status": reply.status})


def error_of(told: Mapping[str, Any]) -> ServiceError:
    """A problem of RFC 9457 as an exception."""
    status = int(told["status"])
    try:
        usual = HTTPStatus(status).phrase
    except ValueError:
        usual = "error"
    return ServiceError(status, str(told.get("title", usual)), str(told.get("detail", "")), told)
