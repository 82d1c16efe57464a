"""Terminal views of ``locb watch``: figures, tables and text charts."""
