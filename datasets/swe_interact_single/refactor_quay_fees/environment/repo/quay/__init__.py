"""What ships owe a small harbour."""
