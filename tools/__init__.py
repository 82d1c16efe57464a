"""Tools for developers of locb."""
