#!/usr/bin/env python3
"""Turns game records and position files into shards that training maps into memory."""

import os
import sys

if __name__ == "__main__":
    sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
    from pydlshogi.launch import launch

    launch(__file__)
