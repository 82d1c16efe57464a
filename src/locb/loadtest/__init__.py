"""A synthetic world that plays against a service: load, latencies, and what was acknowledged."""

try:
    import msgspec  # noqa: F401 - asked for here, so that its absence is told in a sentence
except ImportError as error:
    raise ImportError("locb.loadtest needs msgspec: pip install 'locb[service]'") from error

from locb.loadtest.plan import Plan
from locb.loadtest.report import Latency, Report
from locb.loadtest.runner import Progress, run

__all__ = ["Latency", "Plan", "Progress", "Report", "run"]
