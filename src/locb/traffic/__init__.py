"""A synthetic world that plays against a service: load, latencies, and what was acknowledged."""

try:
    import msgspec  # noqa: F401 - asked for here, so that its absence is told in a sentence
except ImportError as error:
    raise ImportError("locb.traffic needs msgspec: pip install 'locb[service]'") from error

from locb.traffic.plan import Plan
from locb.traffic.player import Progress, run
from locb.traffic.report import Latency, Report

__all__ = ["Latency", "Plan", "Progress", "Report", "run"]
