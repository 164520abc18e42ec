"""The network in play: a model file becomes an evaluator of positions."""
