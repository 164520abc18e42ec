"""The layers of the networks: Chainer's links, computed fast on a CPU and on a GPU."""
