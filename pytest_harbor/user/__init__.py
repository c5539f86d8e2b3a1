"""Floor 2: the simulated user and the MCP servers that an agent is granted."""
