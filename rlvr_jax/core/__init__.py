"""Pure functions of arrays: log-probs, advantages, ratios, losses, aggregation."""
