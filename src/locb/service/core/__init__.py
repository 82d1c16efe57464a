"""Service without HTTP: engine, encoding of decisions, group commit, learning, recovery, erasure and audit."""
