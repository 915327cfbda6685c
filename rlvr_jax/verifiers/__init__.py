"""Checkers of completions and the processes that run them. Never imports JAX."""
