"""The event log in a SQLite or PostgreSQL database."""
