"""A small HTTP server on the loopback interface. Tests define its replies, including invalid ones."""

import asyncio
import inspect
import json
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple


class ReceivedRequest(NamedTuple):
    method: str
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


# Status, headers and body; or raw bytes, after which the connection is closed; or None to close it immediately.
Reply = tuple[int, dict[str, str], Any] | bytes | None
Handler = Callable[[ReceivedRequest], Reply | Awaitable[Reply]]


@dataclass
class Loopback:
    """The server: the requests that it received, and its address."""

    handler: Handler
    received: list[ReceivedRequest] = field(default_factory=list)
    port: int = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while line := (await reader.readline()).decode():
                headers = {}
                while (header := (await reader.readline()).decode().strip()) != "":
                    name, _, value = header.partition(":")
                    headers[name.lower()] = value.strip()
                body = await reader.readexactly(int(headers.get("content-length", 0)))
                method, path, _ = line.split()
                request = ReceivedRequest(method, path, headers, body)
                self.received.append(request)
                reply = self.handler(request)
                if inspect.isawaitable(reply):
                    reply = await reply
                if reply is None:
                    break
                if isinstance(reply, bytes):
                    writer.write(reply)
                    await writer.drain()
                    break
                status, extra_headers, content = reply
                encoded = content if isinstance(content, bytes) else json.dumps(content).encode()
                lines = [f"HTTP/1.1 {status} Said", f"Content-Length: {len(encoded)}"]
                lines += [f"{name}: {value}" for name, value in extra_headers.items()]
                writer.write("\r\n".join([*lines, "", ""]).encode() + encoded)
                await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            writer.close()


@contextmanager
def loopback(handler: Handler, port: int = 0) -> Iterator[Loopback]:
    """Run the server in a thread until the block ends."""
    server = Loopback(handler)
    started, stopping = threading.Event(), asyncio.Event()
    loop = asyncio.new_event_loop()

    async def main() -> None:
        listener = await asyncio.start_server(server.serve, "127.0.0.1", port)
        server.port = listener.sockets[0].getsockname()[1]
        started.set()
        await stopping.wait()
        listener.close()
        tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.sleep(0.01)

    thread = threading.Thread(target=lambda: loop.run_until_complete(main()))
    thread.start()
    assert started.wait(10)
    try:
        yield server
    finally:
        loop.call_soon_threadsafe(stopping.set)
        thread.join(10)
        loop.close()
