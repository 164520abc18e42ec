"""The process of one side of benchmarks/gpu.py.

Arguments: the side, its number format (float32, tf32, float16, bfloat16, mixed16) and the device
(cuda or cpu). The sides are chainer, torch, and ours and cudnn, also with "-recorded".

Each line of standard input is a JSON object; each answer is a line of JSON.
``{"versions": true}`` asks for the versions of the libraries. ``{"task": "train" or
"evaluate", "batch": N, "seconds": S}`` asks for positions per second, measured for about S
seconds. ``{"losses": FILE, "batch": N, "steps": N}`` asks for the loss of each training step on
positions of a file of benchmarks/gpu.py. The weights are the same on each side. The answer is a
sentence if the measurement fails, for example without memory. It also is one if the side was not
what its name says: with a recording that failed, or shapes that cuDNN does not compute.
"""

from __future__ import annotations

import gc
import json
import platform
import sys
import time
from typing import Any, Callable, NamedTuple

import numpy
from network_worker import (
    DIRECTIONS,
    FILTERS,
    LAYERS,
    LEARNING_RATE,
    PLANES,
    SIDE,
    batch,
    torch_network,
)

#: Steps before the clock starts. The first ones compile kernels and record them.
_WARM_UP = 3


class Tasks(NamedTuple):
    """What a side can do.

    Attributes:
        send: Copies a batch (planes, labels) to the device.
        prepare: Makes the further arguments of the tasks for what ``send`` returned.
        train: Runs a training step, and returns its loss on the device.
        evaluate: Computes the logits, without a graph.
        fault: Says, after the first steps, how the side differs from its name; empty if it does
            not. It takes the task and what ``prepare`` has made.
        wait: Waits until the device has finished.
        set_weights: Takes the arrays of :func:`first_weights`.
        versions: Versions of the libraries, in words.
    """

    send: Callable[..., Any]
    prepare: Callable[..., Any]
    train: Callable[..., Any]
    evaluate: Callable[..., Any]
    fault: Callable[..., str]
    wait: Callable[[], Any]
    set_weights: Callable[[list[numpy.ndarray]], None]
    versions: str


def chainer_side(side: str, numbers: str, device_name: str) -> Tasks:
    """Makes the tasks of this package, or of Chainer alone."""
    from pydlshogi.compat import chainer
    from pydlshogi.layers.convolution import set_convolution
    from pydlshogi.layers.gpu.convolve import BY_NAME
    from pydlshogi.layers.gpu.products import set_precision
    from pydlshogi.network.policy import PolicyNetwork

    if numbers == "mixed16":
        chainer.global_config.dtype = chainer.mixed16
    device = chainer.get_device("@cupy:0" if device_name == "cuda" else "@numpy")
    device.use()
    method, _, recording = side.partition("-")
    set_convolution("winograd" if method == "ours" else method)
    if method != "chainer":
        set_precision(numbers)
    network = PolicyNetwork()
    network.to_device(device)
    optimizer = chainer.optimizers.SGD(lr=LEARNING_RATE)
    if numbers == "mixed16":
        optimizer.use_fp32_update()
    optimizer.setup(network)
    dtype = numpy.float16 if numbers == "mixed16" else numpy.float32

    def send(x: Any, t: Any) -> Any:
        return device.send(x.astype(dtype)), device.send(t.astype(numpy.int32))

    def train(x: Any, t: Any) -> Any:
        loss = chainer.functions.softmax_cross_entropy(network(x), t)
        network.cleargrads()
        loss.backward()
        optimizer.update()
        return loss.array

    def evaluate(x: Any, t: Any) -> None:
        with chainer.using_config("train", False), chainer.no_backprop_mode():
            network(x)

    def set_weights(arrays: list[numpy.ndarray]) -> None:
        layers = [network[f"l{number}"] for number in range(1, LAYERS + 2)]
        parameters = [p for layer in layers for p in (layer.W, layer.b) if p is not None]
        for parameter, array in zip([*parameters, network.l13_bias.b], arrays):
            parameter.array[...] = device.send(array)

    def fault(task: str, *made: Any) -> str:
        if made:
            gradients, forward = made
            if not (gradients if task == "train" else forward).is_recorded:
                return "not recorded"
        by_cudnn, all_shapes = BY_NAME["cudnn"].shares()
        return f"cuDNN {by_cudnn} of {all_shapes}" if by_cudnn < all_shapes else ""

    tasks: tuple[Any, ...] = (lambda *batch: (), train, evaluate)
    if recording and device_name == "cuda":
        tasks = recorded(network, optimizer)
    tasks = (*tasks, fault)
    versions = f"Chainer {chainer.__version__}, numpy {numpy.__version__}"
    if device_name != "cuda":
        return Tasks(send, *tasks, lambda: None, set_weights, versions)
    import cupy

    card = cupy.cuda.runtime.getDeviceProperties(0)["name"].decode()
    cuda = cupy.cuda.runtime.runtimeGetVersion()
    versions += f", CuPy {cupy.__version__}, CUDA {cuda}, {card}"
    return Tasks(send, *tasks, cupy.cuda.Device().synchronize, set_weights, versions)


def recorded(network: Any, optimizer: Any) -> tuple[Any, Any, Any]:
    """Makes ``prepare``, ``train`` and ``evaluate`` with recordings."""
    from pydlshogi.compat import chainer
    from pydlshogi.layers.gpu.recording import Memory, Recording
    from pydlshogi.training.trainer import Gradients

    def prepare(x: Any, t: Any) -> Any:
        return Gradients(network), Recording(lambda: network(x).array, Memory())

    def train(x: Any, t: Any, gradients: Any, forward: Any) -> Any:
        measured = gradients(x, t, t.astype(numpy.float32))
        optimizer.update()
        return measured["loss"][0]

    def evaluate(x: Any, t: Any, gradients: Any, forward: Any) -> None:
        with chainer.using_config("train", False), chainer.no_backprop_mode():
            forward()

    return prepare, train, evaluate


def torch_side(numbers: str, device_name: str) -> Tasks:
    """Makes the tasks of PyTorch."""
    import torch

    torch.backends.cuda.matmul.allow_tf32 = numbers == "tf32"
    torch.backends.cudnn.allow_tf32 = numbers == "tf32"
    torch.backends.cudnn.benchmark = True
    layout = torch.channels_last
    network = torch_network().to(device_name, memory_format=layout)
    optimizer = torch.optim.SGD(network.parameters(), lr=LEARNING_RATE)

    def send(x: Any, t: Any) -> Any:
        planes = torch.from_numpy(x).to(device_name).contiguous(memory_format=layout)
        return planes, torch.from_numpy(t).to(device_name)

    def train(x: Any, t: Any) -> Any:
        optimizer.zero_grad()
        with torch.autocast(device_name, torch.bfloat16, enabled=numbers == "bfloat16"):
            loss = torch.nn.functional.cross_entropy(network(x), t)
        loss.backward()
        optimizer.step()
        return loss.detach()

    def evaluate(x: Any, t: Any) -> None:
        autocast = torch.autocast(device_name, torch.bfloat16, enabled=numbers == "bfloat16")
        with torch.inference_mode(), autocast:
            network(x)

    def set_weights(arrays: list[numpy.ndarray]) -> None:
        for parameter, array in zip((*network.layers.parameters(), network.bias), arrays):
            parameter.data.copy_(torch.from_numpy(array))

    tasks = (send, lambda *batch: (), train, evaluate, lambda task: "")
    if device_name != "cuda":
        return Tasks(*tasks, lambda: None, set_weights, f"PyTorch {torch.__version__}")
    versions = (
        f"PyTorch {torch.__version__}, CUDA {torch.version.cuda}, "
        f"cuDNN {torch.backends.cudnn.version()}, {torch.cuda.get_device_name()}"
    )
    return Tasks(*tasks, torch.cuda.synchronize, set_weights, versions)


def give_memory_back() -> None:
    """Frees the memory pools of CuPy and PyTorch, for the other sides."""
    gc.collect()
    if "torch" in sys.modules:
        sys.modules["torch"].cuda.empty_cache()
    if "cupy" in sys.modules:
        sys.modules["cupy"].get_default_memory_pool().free_all_blocks()


def measure(tasks: Tasks, task: str, size: int, seconds: float) -> float | str:
    """Measures positions per second on a batch that is on the device; a sentence if it fails."""
    run = {"train": tasks.train, "evaluate": tasks.evaluate}[task]
    try:
        arrays = tasks.send(*batch(size))
        made = tasks.prepare(*arrays)
        arrays = (*arrays, *made)
        for _ in range(_WARM_UP):
            run(*arrays)
        steps = max(2, round(seconds / elapsed(tasks, run, arrays, 2) * 2))
        rate = size * steps / elapsed(tasks, run, arrays, steps)
        fault = tasks.fault(task, *made)
        return f"{rate:.0f} ({fault})" if fault else rate
    except Exception as error:  # the other measurements must go on
        return in_words(error)


def in_words(error: Exception) -> str:
    """Says why a measurement failed."""
    if "out of memory" in str(error).lower():
        return "out of memory"
    return f"failed: {type(error).__name__}: {str(error)[:200]}"


def elapsed(tasks: Tasks, run: Callable[..., Any], arrays: Any, steps: int) -> float:
    """Times some steps; the device is idle before and after them."""
    tasks.wait()
    start = time.perf_counter()
    for _ in range(steps):
        run(*arrays)
    tasks.wait()
    return time.perf_counter() - start


def first_weights() -> list[numpy.ndarray]:
    """Makes weights by He's initialization, and biases of 0, in the order of the layers."""
    random = numpy.random.RandomState(0)
    found = []
    for number in range(LAYERS):
        shape = FILTERS, FILTERS if number else PLANES, 3, 3
        found += [random.standard_normal(shape) * (2 / numpy.prod(shape[1:])) ** 0.5]
        found += [numpy.zeros(FILTERS)]
    found += [random.standard_normal((DIRECTIONS, FILTERS, 1, 1)) * (2 / FILTERS) ** 0.5]
    found += [numpy.zeros(DIRECTIONS * SIDE**2)]
    return [array.astype(numpy.float32) for array in found]


def losses(tasks: Tasks, file: str, size: int, steps: int) -> list[float] | str:
    """Trains, and returns the loss of each step; a sentence if it fails."""
    try:
        tasks.set_weights(first_weights())
        with numpy.load(file) as data:
            planes, labels = data["planes"], data["labels"]
        random = numpy.random.RandomState(1)
        further: Any = None
        found = []
        for _ in range(steps):
            chosen = random.randint(0, len(labels), size)
            x = numpy.unpackbits(planes[chosen], axis=1)[:, : PLANES * SIDE**2]
            x = x.reshape(-1, PLANES, SIDE, SIDE).astype(numpy.float32)
            arrays = tasks.send(x, labels[chosen].astype(numpy.int64))
            further = tasks.prepare(*arrays) if further is None else further
            found.append(float(tasks.train(*arrays, *further)))
        fault = tasks.fault("train", *(further or ()))
        return fault if fault == "not recorded" else found
    except Exception as error:  # the other sides must go on
        return in_words(error)


def main() -> int:
    """Answers requests until standard input ends."""
    side, numbers, device_name = sys.argv[1:]
    if side == "torch":
        tasks = torch_side(numbers, device_name)
    else:
        tasks = chainer_side(side, numbers, device_name)
    for line in sys.stdin:
        request = json.loads(line)
        answer: Any
        if "versions" in request:
            answer = f"{tasks.versions}, Python {platform.python_version()}"
        else:
            if "losses" in request:
                answer = losses(tasks, request["losses"], request["batch"], request["steps"])
            else:
                answer = measure(tasks, request["task"], request["batch"], request["seconds"])
            give_memory_back()
        print(json.dumps(answer), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
