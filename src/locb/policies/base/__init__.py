"""Base classes of policies and the types that they return."""
