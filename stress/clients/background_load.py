"""Load test that runs in a background thread while the caller injects faults."""

from __future__ import annotations

import threading

from locb import loadtest

UNTIL_FINISHED = 600.0  # duration of a plan whose load ends with ``finish``, so that a fault never comes after its end


class BackgroundLoad:
    """Load test in a background thread. The thread starts when the object is created.

    Parameters
    ----------
    plan : loadtest.Plan
        Plan of the load test.
    """

    def __init__(self, plan: loadtest.Plan) -> None:
        self._plan = plan
        self._report: loadtest.Report | None = None
        self._error: BaseException | None = None
        self._started, self._finishing = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._play, name="clients", daemon=True)
        self._thread.start()

    def _play(self) -> None:
        try:
            self._report = loadtest.run(self._plan, self._progress)
        except BaseException as error:  # raised by ``report``
            self._error = error
        finally:
            self._started.set()

    def _progress(self, _: object) -> bool:
        self._started.set()
        return self._finishing.is_set()

    def wait_started(self) -> None:
        """Wait until the load test has received its first response or has failed."""
        self._started.wait()

    def finish(self) -> None:
        """Send no further decisions, even if the plan has more time."""
        self._finishing.set()

    def report(self) -> loadtest.Report:
        """Wait for the end of the load test and return its report. Raise a RuntimeError if it failed."""
        self._thread.join()
        if self._report is None:
            raise RuntimeError(f"the load test failed: {self._error!r}") from self._error
        return self._report
