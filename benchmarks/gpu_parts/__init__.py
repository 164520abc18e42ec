"""The parts of ``benchmarks/gpu_check.py``: tests, speed, training and play on a GPU.

Each part runs in processes of its own with a time limit. So a part that fails, hangs or breaks
CUDA stops no other part.
"""
