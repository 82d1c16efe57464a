"""Charts for image files, self-contained report pages and the dashboard of the service."""
