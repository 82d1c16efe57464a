"""Measurements of the routes that read: the dashboard, and the event loop while a route computes its response."""
