"""Floor 2: Harbor's own agents and sandboxes, by way of the extra ``pytest-harbor[harbor]``."""
