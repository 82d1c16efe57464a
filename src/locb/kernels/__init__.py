"""Compiled kernels: functions on plain arrays. One subpackage per algorithm, and ``common`` for shared functions."""
