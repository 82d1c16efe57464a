"""Initial state arrays of the compiled policies, and how they grow."""
