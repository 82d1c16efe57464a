"""Functions that format numbers, times and sizes for display."""

from __future__ import annotations

import time

DASH = "–"
MINUS = "−"


def format_number(value: float | None, spec: str = ".3f") -> str:
    """Format a number with the minus sign U+2212, and None as a dash. A number that rounds to 0 has no minus sign.

    Examples
    --------
    >>> format_number(-0.25), format_number(None), format_number(0.5, "+.2f"), format_number(-1e-9)
    ('−0.250', '–', '+0.50', '0.000')
    """
    if value is None:
        return DASH
    text = format(value, spec)
    return (format(0.0, spec) if float(text.replace(",", "")) == 0.0 else text).replace("-", MINUS)


def format_interval(low: float | None, high: float | None, spec: str = ".3f") -> str:
    """Format an interval as "LOW to HIGH"; an empty string if an end is None."""
    return "" if low is None or high is None else f"{format_number(low, spec)} to {format_number(high, spec)}"


def format_rate(value: float) -> str:
    """Format a rate with one decimal if it is below 100 and not 0, otherwise without decimals.

    Examples
    --------
    >>> format_rate(0.0), format_rate(3.14), format_rate(1234.5)
    ('0', '3.1', '1,234')
    """
    return f"{value:,.0f}" if value >= 100 or value == 0 else f"{value:.1f}"


def format_percent(share: float) -> str:
    """Format a share as a percentage. Only 1 becomes 100%. A share above 0 and below 0.01 becomes "less than 1%".

    Examples
    --------
    >>> format_percent(0.256), format_percent(0.999), format_percent(1.0), format_percent(0.001)
    ('26%', '99%', '100%', 'less than 1%')
    """
    if 0.0 < share < 0.01:
        return "less than 1%"
    return f"{min(round(100 * share), 100 if share >= 1.0 else 99)}%"


def format_duration(seconds: float) -> str:
    """Format a duration in seconds with its two largest units.

    Examples
    --------
    >>> format_duration(7.4), format_duration(95), format_duration(3 * 3600 + 61), format_duration(200_000)
    ('7 s', '1 min 35 s', '3 h 1 min', '2 d 7 h')
    """
    whole = max(int(seconds), 0)
    for size, unit, smaller_size, smaller_unit in (
        (86_400, "d", 3_600, "h"),
        (3_600, "h", 60, "min"),
        (60, "min", 1, "s"),
    ):
        if whole >= size:
            remainder = whole % size // smaller_size
            return f"{whole // size} {unit}" + (f" {remainder} {smaller_unit}" if remainder else "")
    return f"{whole} s"


def format_bytes(count: float) -> str:
    """Format a number of bytes with a decimal unit (1 kB is 1,000 bytes).

    Examples
    --------
    >>> format_bytes(512), format_bytes(2_500_000)
    ('512 bytes', '2.5 MB')
    """
    for scale, unit in ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if count >= scale:
            return f"{count / scale:.3g} {unit}"
    return f"{count:,.0f} bytes"


def format_time(timestamp: float, now: float) -> str:
    """Format a timestamp as local time, with seconds if it is on the same day as ``now``, else with the date."""
    local, today = time.localtime(timestamp), time.localtime(now)
    return time.strftime("%H:%M:%S" if local[:3] == today[:3] else "%Y-%m-%d %H:%M", local)


def format_count(count: int, singular: str, plural: str) -> str:
    """Format a count with its noun in the singular or the plural.

    Examples
    --------
    >>> format_count(1, "user", "users"), format_count(1200, "user", "users")
    ('1 user', '1,200 users')
    """
    return f"{count:,} {singular if count == 1 else plural}"
