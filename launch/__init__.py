"""Command-line entry points: parse, call, exit."""
