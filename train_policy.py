#!/usr/bin/env python3
"""Trains the policy network: python train_policy.py TRAIN_LIST TEST_LIST (see --help)."""

import sys

if __name__ == "__main__":
    try:
        from pydlshogi.commands.train_policy import main

        sys.exit(main())
    except KeyboardInterrupt:  # during the import
        sys.exit(130)
