"""The fused step, the loop around it, checkpoints and metrics."""
