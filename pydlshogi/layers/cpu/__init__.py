"""Convolution, batch normalization and linear layers, computed fast on a CPU."""
