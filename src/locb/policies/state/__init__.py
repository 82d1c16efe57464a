"""State arrays of the compiled policies: initial values, and new rows for users who are added later."""
