"""joblib backend for Dask that reports failed tasks.

The Dask backend of joblib 1.6 does not call the callback of a failed task, so joblib waits for the task forever.
"""

from __future__ import annotations

import asyncio
from typing import Any

from joblib._dask import DaskDistributedBackend


class DaskBackend(DaskDistributedBackend):  # type: ignore[misc]  # joblib has no types
    """Dask backend that passes the error of a failed task to joblib."""

    def effective_n_jobs(self, n_jobs: int) -> int:
        """Return the number of workers, or 2 if it is smaller, because with 1 joblib runs all tasks in this process."""
        return max(2, int(super().effective_n_jobs(n_jobs)))

    async def _collect(self) -> None:
        while self._continue:
            async for future, result in self.waiting_futures:
                pending, callback = self._results.pop(future), self._callbacks.pop(future)
                if future.status == "error":
                    result = result[1]  # (type, exception, traceback)
                pending.set_result(result)
                callback(result)
            await asyncio.sleep(0.01)

    def retrieve_result_callback(self, out: Any) -> Any:
        """Return the result of a task, or raise the error that Dask reported for it."""
        if isinstance(out, BaseException):
            raise out
        return super().retrieve_result_callback(out)
