"""Analysis of positions and games by a network, with or without a search."""
