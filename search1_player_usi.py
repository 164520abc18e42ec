#!/usr/bin/env python3
"""Starts the USI engine that looks one move ahead; register this file in a GUI."""

import os
import sys

if __name__ == "__main__":
    sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
    from pydlshogi.launch import launch

    launch(__file__)
