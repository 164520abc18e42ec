"""Players: what they know of the rules, and how they choose a move."""
