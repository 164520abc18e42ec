"""The layers on a GPU: kernels of ours and products of cuBLAS.

CuPy 14 does not support cuDNN, and Chainer's own kernels are several times slower.
"""
