"""What a page that is looked at asks for: how the service does, users and groups as pictures, one user closely."""
