"""Floor 3: one episode, from a started group to a result."""
