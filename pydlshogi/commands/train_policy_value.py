"""The program train_policy_value: trains the network with a policy and a value head by default."""

import sys

from pydlshogi.commands.train import training_program

main = training_program("train_policy_value")

if __name__ == "__main__":
    sys.exit(main())
