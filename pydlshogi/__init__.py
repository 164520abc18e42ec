"""Shogi networks and players in Chainer, from game records to a USI engine.

Importing this package imports nothing heavy: numpy, chainer and cupy are loaded by
the modules that need them. This file runs on every Python from 2.7 on (see launch.py).
"""

__version__ = "1.0.0"
