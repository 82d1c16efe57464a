"""Faults and load that the service must survive: real processes, real disks, real databases, all on loopback."""
