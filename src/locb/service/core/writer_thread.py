"""A thread that does one thing after the other, for a loop that waits for each."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from queue import SimpleQueue
from threading import Thread
from typing import Any

Job = tuple[asyncio.Future[Any], Callable[..., Any], tuple[Any, ...]]


class WriterThread:
    """Takes half as long to hand work over as an executor, which counts for who does so for every batch.

    Parameters
    ----------
    name : str
        Of the thread.
    """

    def __init__(self, name: str) -> None:
        self._jobs: SimpleQueue[Job | None] = SimpleQueue()
        self._thread = Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def do(self, work: Callable[..., Any], *arguments: Any) -> asyncio.Future[Any]:
        """What comes of this, when all that was asked for before is done."""
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._jobs.put((future, work, arguments))
        return future

    def stop(self) -> None:
        """End the thread, once all is done."""
        self._jobs.put(None)
        self._thread.join()

    def _run(self) -> None:
        while (job := self._jobs.get()) is not None:
            future, work, arguments = job
            outcome, error = None, None
            try:
                outcome = work(*arguments)
            except BaseException as raised:
                error = raised
            future.get_loop().call_soon_threadsafe(_tell, future, outcome, error)
            del job, future, work, arguments, outcome, error  # or they would live on until the next job


def _tell(future: asyncio.Future[Any], outcome: Any, error: BaseException | None) -> None:
    if future.done():  # nobody waits for it any more
        return
    if error is None:
        future.set_result(outcome)
    else:
        future.set_exception(error)
