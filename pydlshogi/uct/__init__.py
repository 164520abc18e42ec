"""The Monte-Carlo tree search. It knows no GUI and no network."""
