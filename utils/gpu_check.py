#!/usr/bin/env python3
"""Runs tests, benchmark, trainings and engines on a GPU, and prints one table."""

import os
import sys

if __name__ == "__main__":
    sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
    from pydlshogi.launch import launch

    launch(__file__)
