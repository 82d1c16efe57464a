"""Service without HTTP: commands, the engine that handles them, durable storage, recovery and erasure."""
