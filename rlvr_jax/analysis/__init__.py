"""What a finished run shows."""
