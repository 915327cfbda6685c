"""The decoder and its weights."""
