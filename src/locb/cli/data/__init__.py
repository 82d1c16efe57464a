"""Commands for data sets and logs: ``locb data``, ``locb evaluate`` and ``locb groups``."""
