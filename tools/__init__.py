"""For those who work on locb itself."""
