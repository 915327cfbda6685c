"""Small worlds where a claim about RLVR can be seen in seconds."""
