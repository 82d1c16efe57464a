"""Work of the service beside requests: queues, supervised tasks, retention, WAL checkpoints, a watchdog."""
