"""HTTP service that recommends arms and learns from rewards: one process, one policy, one durable event log."""
