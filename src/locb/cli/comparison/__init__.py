"""Command ``locb compare``: options, and the comparison in one environment or in several scenarios."""
