"""The program train_policy: trains the policy network by default."""

import sys

from pydlshogi.commands.train import training_program

main = training_program("train_policy")

if __name__ == "__main__":
    sys.exit(main())
