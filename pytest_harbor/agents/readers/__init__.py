"""Readers: from what a CLI leaves behind to what its agent did in a turn."""
