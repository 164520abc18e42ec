#!/usr/bin/env python3
"""Trains a policy network: python train_policy.py TRAIN_LIST TEST_LIST (see --help)."""

import os
import sys

if __name__ == "__main__":
    sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
    from pydlshogi.launch import launch

    launch(__file__)
