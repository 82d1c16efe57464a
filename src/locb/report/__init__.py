"""Reports for people: charts, pages, tables, run folders and terminal views."""
