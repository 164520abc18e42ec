"""Analysis of positions and games by a network, with or without a search."""

#: Seconds of search for each position of a game, unless the user wants another number.
USUAL_SECONDS = 0.2
