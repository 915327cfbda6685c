"""Sampling completions and having them verified."""
