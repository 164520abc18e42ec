"""Players: each chooses a move in a position."""
