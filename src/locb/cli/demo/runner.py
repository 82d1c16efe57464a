"""Runner of the demonstration: a service and its simulated visitors in one process."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

from locb.cli.demo.film_catalogue import DIM, FilmCatalogue
from locb.cli.demo.visitors import Visitors
from locb.client import Client
from locb.service.config import ServiceConfig
from locb.service.server import serve

HOST = "127.0.0.1"


def run_demo(folder: Path, port: int, rate: float, started: Callable[[], None], seed: int = 0) -> None:
    """Run a service and simulated visitors until Ctrl-C.

    Parameters
    ----------
    folder : Path
        Data directory of the service.
    port : int
        Port of the service.
    rate : float
        Visits per second.
    started : callable
        Called without arguments as soon as the service responds.
    seed : int, default 0
        Random seed of the films and the visits.
    """
    config = ServiceConfig(folder, dim=DIM, host=HOST, port=port, shutdown_timeout=5.0)
    with Client(f"http://{HOST}:{port}", retries=0) as client:
        visitors = Visitors(client, FilmCatalogue(seed), rate)
        visits = threading.Thread(target=visitors.run, args=(started,), name="visitors")
        try:
            # Visits start only when the port is bound. Before that, another service may answer at this port.
            serve(config, on_listening=lambda _: visits.start())
        finally:
            visitors.stop()
            if visits.ident is not None:
                visits.join()
