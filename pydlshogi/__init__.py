"""The shogi policy network of 「将棋AIで学ぶディープラーニング」, from kifu to a USI engine.

Importing this package imports nothing heavy: numpy, chainer and cupy are loaded by
the modules that need them.
"""

__version__ = "1.0.0"
