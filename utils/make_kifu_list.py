#!/usr/bin/env python3
"""Divides the game records of a folder into a training list and a test list."""

import os
import sys

if __name__ == "__main__":
    sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
    from pydlshogi.launch import launch

    launch(__file__)
