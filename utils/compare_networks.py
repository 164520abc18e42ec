#!/usr/bin/env python3
"""Trains several networks on the same positions and compares them: table and curves."""

import os
import sys

if __name__ == "__main__":
    sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
    from pydlshogi.launch import launch

    launch(__file__)
