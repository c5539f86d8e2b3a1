"""Floor 1: Docker, and nothing above it."""
