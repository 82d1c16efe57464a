"""Fault injection tests and load tests of the service, with real processes, disks and databases on this machine."""
