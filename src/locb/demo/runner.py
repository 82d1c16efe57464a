"""A service with visitors, in one process and a folder of its own."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

from locb.client import Client
from locb.demo.film_catalogue import DIM, Cinema
from locb.demo.visitors import Visitors
from locb.service.api.auth import Tokens
from locb.service.config import Options
from locb.service.server import serve

HOST = "127.0.0.1"
SETTINGS = {"gamma": 0.5, "alpha": 0.3}  # people of one kind here are about that near to each other


def show(folder: Path, port: int, rate: float, started: Callable[[], None], seed: int = 0) -> None:
    """Serve to made-up visitors, and to whoever looks, until Ctrl-C; ``started`` is called when it can be looked at."""
    options = Options(folder, policy="locb", dim=DIM, parameters=dict(SETTINGS))
    with Client(f"http://{HOST}:{port}", retries=0) as client:
        visitors = Visitors(client, Cinema(seed), rate)
        coming = threading.Thread(target=visitors.come, args=(started,), name="visitors")
        try:
            # They come once the address is ours: another service may be there.
            serve(options, HOST, port, Tokens(), stop_seconds=5, listening=coming.start)
        finally:
            visitors.stay_at_home()
            if coming.ident is not None:
                coming.join()
