"""The Monte-Carlo tree search. It knows neither USI nor a network."""
