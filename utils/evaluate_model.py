#!/usr/bin/env python3
"""Measures loss and accuracy of a model on a list of games, by phase of the game."""

import os
import sys

if __name__ == "__main__":
    sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
    from pydlshogi.launch import launch

    launch(__file__)
