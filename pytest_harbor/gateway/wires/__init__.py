"""The four protocols that clients speak to a model server, one module each.

A wire knows how its requests and answers are written, and nothing of where they go.
"""
