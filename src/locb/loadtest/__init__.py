"""Load generator for a service: sends requests of simulated users, and measures throughput, latency and errors."""

try:
    import msgspec  # noqa: F401 - imported here for a clear error message
except ImportError as error:
    raise ImportError("locb.loadtest needs the package msgspec: run pip install 'locb[service]'") from error

from locb.loadtest.plan import Plan
from locb.loadtest.report import Latency, Report
from locb.loadtest.runner import Progress, run

__all__ = ["Latency", "Plan", "Progress", "Report", "run"]
