"""Commands for data sets and logs: ``locb data``, ``locb evaluate``, ``locb groups`` and ``locb tune``."""
