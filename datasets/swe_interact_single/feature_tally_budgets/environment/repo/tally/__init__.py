"""Expenses in a text file."""
