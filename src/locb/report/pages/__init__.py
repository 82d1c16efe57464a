"""Pages that reports write: HTML pages, and the Markdown page of the results."""
