"""The layers on a GPU: kernels of ours and products of cuBLAS.

CuPy 14 does not support cuDNN. With large batches, Chainer's own kernels are 1.8 to 4.6 times
slower (benchmarks/RESULTS.md).
"""
