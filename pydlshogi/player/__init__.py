"""Players: how they choose a move."""
