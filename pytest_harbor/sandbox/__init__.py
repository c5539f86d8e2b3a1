"""Floor 1: Compose groups, containers and images. Only here is Docker known."""
