"""The program train_policy_value_resnet: trains the residual network with both heads by default."""

from pydlshogi.commands.train import training_program

main = training_program("train_policy_value_resnet")
