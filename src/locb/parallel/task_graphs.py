"""Tasks that use the results of other tasks, on a Dask or Ray cluster. Results stay on the workers."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack
from importlib import import_module
from types import TracebackType
from typing import Any

from joblib import cpu_count

from locb.parallel.clusters import connect_dask, connect_ray, parse_on

NAMES = ("on", "on")  # parameters that error messages name


class TaskGraph(AbstractContextManager["TaskGraph"]):
    """Tasks of a cluster. A task is a module-level function, and its arguments may be results of other tasks.

    If a worker fails, the cluster runs its unfinished tasks again, and the tasks whose results were lost. Tasks must
    not change their arguments, and must return the same value every time.

    Attributes
    ----------
    workers : int
        Number of tasks that run at the same time.
    """

    workers: int

    def __init__(self, address: str | None) -> None:
        self.address = address
        self._resources = ExitStack()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._resources.close()

    def share(self, value: Any) -> Any:
        """Return an argument for tasks that stands for a value that many tasks use. The value is sent only once."""
        raise NotImplementedError

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Run a task, and return an argument for tasks that stands for its result."""
        raise NotImplementedError

    def submit_parts(self, function: Callable[..., Sequence[Any]], parts: int, *arguments: Any) -> list[Any]:
        """Run a task that returns ``parts`` ≥ 2 values, and return one argument for tasks per value."""
        raise NotImplementedError

    def result(self, task: Any) -> Any:
        """Wait for the result of a task, and return it.

        Raises
        ------
        OSError
            If the workers that ran the task, or a task that it uses, failed several times.
        """
        try:
            return self._fetch(task)
        except self._worker_errors() as error:
            reason = next(iter(str(error).splitlines()), "")
            raise OSError(f"workers failed repeatedly with the same task; check their free memory: {reason}") from error

    def _fetch(self, task: Any) -> Any:
        raise NotImplementedError

    def _worker_errors(self) -> tuple[type[BaseException], ...]:
        raise NotImplementedError


class DaskTasks(TaskGraph):
    """Tasks of a Dask cluster."""

    def __enter__(self) -> DaskTasks:
        self._client = connect_dask(self.address, cpu_count(), self._resources, NAMES)
        self.workers = max(1, sum(self._client.ncores().values()))
        return self

    def share(self, value: Any) -> Any:
        """Return the value as a task, because Dask can repeat a task, but cannot restore a value that was scattered."""
        return self.submit(_identity, value)

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Run a task."""
        return self._client.submit(function, *arguments, pure=False)

    def submit_parts(self, function: Callable[..., Sequence[Any]], parts: int, *arguments: Any) -> list[Any]:
        """Run a task with several results."""
        whole = self.submit(function, *arguments)
        return [self.submit(operator.getitem, whole, part) for part in range(parts)]

    def _fetch(self, task: Any) -> Any:
        return task.result()

    def _worker_errors(self) -> tuple[type[BaseException], ...]:
        return (import_module("dask.distributed").KilledWorker,)


class RayTasks(TaskGraph):
    """Tasks of a Ray cluster."""

    def __enter__(self) -> RayTasks:
        self._ray = connect_ray(self.address, cpu_count(), self._resources, NAMES)
        self.workers = max(1, int(self._ray.cluster_resources().get("CPU", 1)))
        return self

    def share(self, value: Any) -> Any:
        """Return a reference to a copy of the value in the memory of the cluster."""
        return self._ray.put(value)

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Run a task."""
        return self._ray.remote(function).remote(*arguments)

    def submit_parts(self, function: Callable[..., Sequence[Any]], parts: int, *arguments: Any) -> list[Any]:
        """Run a task with several results."""
        found: list[Any] = self._ray.remote(function).options(num_returns=parts).remote(*arguments)
        return found

    def _fetch(self, task: Any) -> Any:
        try:
            return self._ray.get(task)
        except self._ray.exceptions.RayTaskError as error:
            raise error.cause from error  # the error of the function, without the traceback of the worker

    def _worker_errors(self) -> tuple[type[BaseException], ...]:
        errors = self._ray.exceptions
        return errors.WorkerCrashedError, errors.ObjectLostError, errors.OutOfMemoryError


def open_tasks(on: str) -> TaskGraph:
    """Return the tasks of the cluster that ``on`` describes: "dask" or "ray", optionally followed by ://HOST:PORT."""
    backend, address = parse_on(on)
    return DaskTasks(address) if backend == "dask" else RayTasks(address)


def _identity(value: Any) -> Any:
    return value
