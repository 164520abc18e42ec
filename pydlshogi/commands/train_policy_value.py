"""The program train_policy_value: trains the network with a policy and a value head by default."""

from pydlshogi.commands.train import training_program

main = training_program("train_policy_value")
