#!/usr/bin/env python3
"""Trains the network with a policy and a value head: python train_policy_value.py TRAIN_LIST TEST_LIST (see --help)."""

import sys

if __name__ == "__main__":
    try:
        from pydlshogi.commands.train_policy_value import main

        sys.exit(main())
    except KeyboardInterrupt:  # during the import
        sys.exit(130)
