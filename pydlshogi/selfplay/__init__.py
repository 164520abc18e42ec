"""Self-play: many games in one batch of the network, and the loop that learns from them."""
