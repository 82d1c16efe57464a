"""Event log in a SQLite or PostgreSQL database."""
