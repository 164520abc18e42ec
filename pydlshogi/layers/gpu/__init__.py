"""The layers on a GPU: kernels of ours, products of cuBLAS and convolutions of cuDNN."""
