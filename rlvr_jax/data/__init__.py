"""Problems, their order, tokens."""
