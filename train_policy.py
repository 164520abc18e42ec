#!/usr/bin/env python3
"""Trains the policy network: python train_policy.py TRAIN_LIST TEST_LIST (see --help)."""

import sys

from pydlshogi.training.main import main

if __name__ == "__main__":
    sys.exit(main())
