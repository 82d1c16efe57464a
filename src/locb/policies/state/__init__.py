"""State arrays of the compiled policies: initial values, and growth for users who are added later."""
