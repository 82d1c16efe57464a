"""Fault injection and load tests of the service, with real processes, disks and databases on the local machine."""
