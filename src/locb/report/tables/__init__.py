"""Tables for terminals, CSV files and pages."""
