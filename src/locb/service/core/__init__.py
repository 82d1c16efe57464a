"""The service without HTTP: commands, the engine that handles them, durability, recovery and erasure."""
