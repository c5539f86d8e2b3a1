"""Floor 0: the Harbor task format, read from files."""
