#!/usr/bin/env python3
"""Plays matches between USI engines and prints a table of the results."""

import os
import sys

if __name__ == "__main__":
    sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
    from pydlshogi.launch import launch

    launch(__file__)
