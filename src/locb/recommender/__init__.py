"""Recommendations for users and arms with names: the core that the library and the service share."""
