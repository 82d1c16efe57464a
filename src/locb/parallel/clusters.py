"""Connections to Dask and Ray clusters."""

from __future__ import annotations

import os
import socket
from contextlib import ExitStack
from importlib import import_module
from typing import Any

from locb.common.validation import ParameterError

CONNECT_TIMEOUT = 10  # seconds
CLUSTERS = ("dask", "ray")


def parse_on(on: str) -> tuple[str, str | None]:
    """Return the backend and the address that ``on`` describes: a backend, optionally followed by ://HOST:PORT.

    Examples
    --------
    >>> parse_on("dask://10.0.0.5:8786"), parse_on("ray")
    (('dask', '10.0.0.5:8786'), ('ray', None))
    """
    backend, _, address = on.partition("://")
    if backend not in CLUSTERS:
        raise ParameterError("on", f" must be dask, ray, dask://HOST:PORT or ray://HOST:PORT, not {on!r}")
    return backend, address or None


def connect_dask(
    address: str | None, jobs: int, resources: ExitStack, names: tuple[str, str] = ("backend", "address")
) -> Any:
    """Return a client of a Dask cluster, which ``resources`` closes.

    Parameters
    ----------
    address : str or None
        HOST:PORT of the scheduler; None to start workers on this machine.
    jobs : int
        Number of workers that are started.
    resources : ExitStack
        Owner of the connection.
    names : (str, str)
        Parameters that error messages name: of the backend, and of the address.
    """
    try:
        dask: Any = import_module("dask.distributed")
    except ImportError as error:
        raise _missing("dask", error, names[0]) from error
    if address is None:
        options = {"n_workers": jobs, "threads_per_worker": 1, "dashboard_address": None}
        cluster: Any = resources.enter_context(dask.LocalCluster(**options))
    else:
        cluster = address
        start = "'dask scheduler', and workers with 'dask worker ADDRESS'"
        check_reachable(address, "Dask scheduler", start, names[1])
    return resources.enter_context(dask.Client(cluster, timeout=CONNECT_TIMEOUT))


def connect_ray(
    address: str | None, jobs: int, resources: ExitStack, names: tuple[str, str] = ("backend", "address")
) -> Any:
    """Connect to a Ray cluster until ``resources`` is closed, and return the module ``ray``; see ``connect_dask``."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # disable telemetry
    try:
        ray: Any = import_module("ray")
    except ImportError as error:
        raise _missing("ray", error, names[0]) from error
    options = {"num_cpus": jobs, "include_dashboard": False} if address is None else {}
    if address is not None:
        check_reachable(address, "Ray head", "'ray start --head'", names[1])  # ray.init waits up to two minutes
    ray.init(address=address or "local", logging_level="error", log_to_driver=False, **options)
    resources.callback(ray.shutdown)
    return ray


def check_reachable(address: str, server: str, start_command: str, name: str) -> None:
    """Raise a ParameterError about ``name`` unless a server accepts connections at ``address``."""
    host, _, port = address.rpartition("://")[2].rpartition(":")
    if not host or not port.isdigit():
        raise ParameterError(name, f" must be HOST:PORT of the {server}, not {address!r}")
    try:
        socket.create_connection((host, int(port)), timeout=CONNECT_TIMEOUT).close()
    except (OSError, OverflowError) as error:
        message = f": no {server} answers at {address!r} ({error}); start it with {start_command}"
        raise ParameterError(name, message) from error


def _missing(backend: str, error: ImportError, name: str) -> ParameterError:
    return ParameterError(name, f" {backend} needs the package {error.name}: run pip install 'locb[{backend}]'")
