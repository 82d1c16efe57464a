"""A world to look at a service with: films, people with tastes, and their evenings, asked over HTTP."""
