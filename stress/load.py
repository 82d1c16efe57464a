"""Clients beside a fault: a load in a thread, while the caller does harm."""

from __future__ import annotations

import threading

from locb import loadtest as traffic


class Load:
    """Plays a plan from now on; ``report`` waits for its end."""

    def __init__(self, plan: traffic.Plan) -> None:
        self._plan = plan
        self._report: traffic.Report | None = None
        self._error: BaseException | None = None
        self._started = threading.Event()
        self._thread = threading.Thread(target=self._play, name="clients", daemon=True)
        self._thread.start()

    def _play(self) -> None:
        try:
            self._report = traffic.run(self._plan, lambda _: self._started.set())
        except BaseException as error:  # told by whoever asks for the report
            self._error = error
        finally:
            self._started.set()

    def wait_started(self) -> None:
        """Wait until answers come."""
        self._started.wait()

    def report(self) -> traffic.Report:
        """What the clients found."""
        self._thread.join()
        if self._report is None:
            raise RuntimeError(f"the clients failed: {self._error!r}") from self._error
        return self._report
