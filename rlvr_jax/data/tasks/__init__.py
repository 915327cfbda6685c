"""Generated problems with known answers."""
