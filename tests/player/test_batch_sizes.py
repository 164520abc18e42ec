"""The batches of a search suit the device, the backend and the threads."""

import types

import numpy
import pytest

from pydlshogi.inference.backend import (
    OPENVINO_BFLOAT16,
    OPENVINO_FLOAT32,
    OPENVINO_INT8,
    OWN,
)
from pydlshogi.layers.cpu.threads import set_threads
from pydlshogi.player.batch_sizes import default_batch_size, default_batches

CPU, GPU = types.SimpleNamespace(xp=numpy), types.SimpleNamespace(xp=object())


@pytest.fixture(autouse=True)
def all_threads_afterwards():
    yield
    set_threads(None)


@pytest.mark.parametrize(
    ("device", "backend", "threads", "size", "batches"),
    [
        (CPU, OWN, 1, 4, 1),
        (CPU, OWN, 2, 8, 1),
        (CPU, OWN, 8, 16, 1),
        (CPU, OPENVINO_FLOAT32, 2, 8, 1),
        (CPU, OPENVINO_BFLOAT16, 1, 8, 1),
        (CPU, OPENVINO_BFLOAT16, 2, 16, 2),
        (CPU, OPENVINO_INT8, 1, 8, 1),
        (CPU, OPENVINO_INT8, 2, 16, 2),
        (CPU, OPENVINO_INT8, 8, 32, 2),
        (GPU, OWN, 1, 128, 2),
    ],
)
def test_a_fast_network_has_larger_batches_and_computes_beside_the_search(
    device, backend, threads, size, batches
):
    set_threads(threads)
    assert default_batch_size(device, backend) == size
    assert default_batches(device, backend) == batches
