"""Floor 2: who acts in a turn."""
