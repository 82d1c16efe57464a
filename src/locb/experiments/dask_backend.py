"""joblib's Dask backend, mended: a task that Dask gives up is told to joblib, which would wait for it for ever."""

from __future__ import annotations

import asyncio
from typing import Any

from joblib._dask import DaskDistributedBackend


class DaskBackend(DaskDistributedBackend):  # type: ignore[misc]  # joblib has no types
    """Seen with joblib 1.6: when all workers that tried a task died, its callback was never called."""

    def effective_n_jobs(self, n_jobs: int) -> int:
        """At least two."""
        # With one worker joblib would run everything in this process instead.
        return max(2, int(super().effective_n_jobs(n_jobs)))

    async def _collect(self) -> None:
        while self._continue:
            async for future, result in self.waiting_futures:
                waiting, callback = self._results.pop(future), self._callbacks.pop(future)
                if future.status == "error":
                    result = result[1]  # type, exception, traceback
                waiting.set_result(result)
                callback(result)
            await asyncio.sleep(0.01)

    def retrieve_result_callback(self, out: Any) -> Any:
        """The result, or the error that Dask gave up with."""
        if isinstance(out, BaseException):
            raise out
        return super().retrieve_result_callback(out)
