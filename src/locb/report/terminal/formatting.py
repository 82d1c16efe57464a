"""Numbers, times and sizes in the words that people read."""

from __future__ import annotations

import time

DASH = "–"
MINUS = "−"


def number(value: float | None, form: str = ".3f") -> str:
    """A number, with a real minus; a dash for none.

    Examples
    --------
    >>> number(-0.25), number(None), number(0.5, "+.2f"), number(-1e-9)
    ('−0.250', '–', '+0.50', '0.000')
    """
    if value is None:
        return DASH
    told = format(value, form)
    return (format(0.0, form) if float(told.replace(",", "")) == 0.0 else told).replace("-", MINUS)


def interval(low: float | None, high: float | None, form: str = ".3f") -> str:
    """From where to where; nothing if that is not known."""
    return "" if low is None or high is None else f"{number(low, form)} to {number(high, form)}"


def rate(value: float) -> str:
    """So many a second: one digit after the point while there are few.

    Examples
    --------
    >>> rate(0.0), rate(3.14), rate(1234.5)
    ('0', '3.1', '1,234')
    """
    return f"{value:,.0f}" if value >= 100 or value == 0 else f"{value:.1f}"


def percent(share: float) -> str:
    """A share of all; what is not all is never told as all.

    Examples
    --------
    >>> percent(0.256), percent(0.999), percent(1.0), percent(0.001)
    ('26%', '99%', '100%', 'less than 1%')
    """
    if 0.0 < share < 0.01:
        return "less than 1%"
    return f"{min(round(100 * share), 100 if share >= 1.0 else 99)}%"


def lasting(seconds: float) -> str:
    """A length of time, in its two largest units.

    Examples
    --------
    >>> lasting(7.4), lasting(95), lasting(3 * 3600 + 61), lasting(200_000)
    ('7 s', '1 min 35 s', '3 h 1 min', '2 d 7 h')
    """
    whole = max(int(seconds), 0)
    for size, unit, smaller, rest in ((86_400, "d", 3_600, "h"), (3_600, "h", 60, "min"), (60, "min", 1, "s")):
        if whole >= size:
            left = whole % size // smaller
            return f"{whole // size} {unit}" + (f" {left} {rest}" if left else "")
    return f"{whole} s"


def size(count: float) -> str:
    """Bytes.

    Examples
    --------
    >>> size(512), size(2_500_000)
    ('512 bytes', '2.5 MB')
    """
    for scale, unit in ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if count >= scale:
            return f"{count / scale:.3g} {unit}"
    return f"{count:,.0f} bytes"


def moment(when: float, now: float) -> str:
    """A time of day on this machine's clock, with the day where that is another one."""
    at, today = time.localtime(when), time.localtime(now)
    return time.strftime("%H:%M:%S" if at[:3] == today[:3] else "%Y-%m-%d %H:%M", at)


def many(count: int, one: str, more: str) -> str:
    """So many of them.

    Examples
    --------
    >>> many(1, "user", "users"), many(1200, "user", "users")
    ('1 user', '1,200 users')
    """
    return f"{count:,} {one if count == 1 else more}"
