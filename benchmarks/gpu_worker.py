"""The process of one side of benchmarks/gpu.py.

Arguments: the side, its number format (float32, tf32, float16, mixed16, bf16) and the device (cuda
or cpu). Each line of standard input is a JSON object; each answer is a line of JSON.
``{"versions": true}`` asks for the versions of the libraries. ``{"task": "train" or
"evaluate", "batch": N, "seconds": S}`` asks for positions per second, measured for about S
seconds. The answer is a sentence if the measurement fails, for example without memory.
"""

from __future__ import annotations

import gc
import json
import platform
import sys
import time
from typing import Any, Callable, NamedTuple

import numpy
from network_worker import LEARNING_RATE, batch, torch_network

#: Steps before the clock starts. The first ones compile kernels and record them.
_WARM_UP = 3


class Tasks(NamedTuple):
    """What a side can do.

    Attributes:
        send: Copies a batch (planes, labels) to the device.
        train: Runs a training step on what ``send`` returned.
        evaluate: Computes the logits, without a graph.
        wait: Waits until the device has finished.
        versions: Versions of the libraries, in words.
    """

    send: Callable[..., Any]
    train: Callable[..., Any]
    evaluate: Callable[..., Any]
    wait: Callable[[], Any]
    versions: str


def chainer_side(convolution: str, numbers: str, device_name: str) -> Tasks:
    """Makes the tasks of Chainer with a method of convolution."""
    from pydlshogi.compat import chainer
    from pydlshogi.layers.convolution import set_convolution
    from pydlshogi.layers.gpu.products import set_precision
    from pydlshogi.network.policy import PolicyNetwork

    if numbers == "mixed16":
        chainer.global_config.dtype = chainer.mixed16
    device = chainer.get_device("@cupy:0" if device_name == "cuda" else "@numpy")
    device.use()
    if convolution in ("ours", "recorded"):
        set_precision(numbers)
    else:
        set_convolution(convolution)
    network = PolicyNetwork()
    network.to_device(device)
    optimizer = chainer.optimizers.SGD(lr=LEARNING_RATE)
    if numbers == "mixed16":
        optimizer.use_fp32_update()
    optimizer.setup(network)
    dtype = numpy.float16 if numbers == "mixed16" else numpy.float32

    def send(x: Any, t: Any) -> Any:
        return device.send(x.astype(dtype)), device.send(t.astype(numpy.int32))

    def train(x: Any, t: Any) -> None:
        optimizer.update(lambda: chainer.functions.softmax_cross_entropy(network(x), t))

    def evaluate(x: Any, t: Any) -> None:
        with chainer.using_config("train", False), chainer.no_backprop_mode():
            network(x)

    if convolution == "recorded" and device_name == "cuda":
        send, train, evaluate = recorded(send, network, optimizer)
    versions = f"Chainer {chainer.__version__}, numpy {numpy.__version__}"
    if device_name != "cuda":
        return Tasks(send, train, evaluate, lambda: None, versions)
    import cupy

    card = cupy.cuda.runtime.getDeviceProperties(0)["name"].decode()
    cuda = cupy.cuda.runtime.runtimeGetVersion()
    versions += f", CuPy {cupy.__version__}, CUDA {cuda}, {card}"
    return Tasks(send, train, evaluate, cupy.cuda.Device().synchronize, versions)


def recorded(send: Any, network: Any, optimizer: Any) -> tuple[Any, Any, Any]:
    """Makes the tasks of ours on a GPU with recordings."""
    from pydlshogi.compat import chainer
    from pydlshogi.layers.gpu.recording import Memory, Recording
    from pydlshogi.training.trainer import Gradients

    def send_and_prepare(x: Any, t: Any) -> Any:
        arrays = send(x, t)
        forward = Recording(lambda: network(arrays[0]).array, Memory())
        return *arrays, Gradients(network), forward

    def train(x: Any, t: Any, gradients: Any, forward: Any) -> None:
        gradients(x, t, t.astype(numpy.float32))
        optimizer.update()

    def evaluate(x: Any, t: Any, gradients: Any, forward: Any) -> None:
        with chainer.using_config("train", False), chainer.no_backprop_mode():
            forward()

    return send_and_prepare, train, evaluate


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

    def train(x: Any, t: Any) -> None:
        optimizer.zero_grad()
        with torch.autocast(device_name, torch.bfloat16, enabled=numbers == "bf16"):
            loss = torch.nn.functional.cross_entropy(network(x), t)
        loss.backward()
        optimizer.step()

    def evaluate(x: Any, t: Any) -> None:
        autocast = torch.autocast(device_name, torch.bfloat16, enabled=numbers == "bf16")
        with torch.inference_mode(), autocast:
            network(x)

    if device_name != "cuda":
        return Tasks(send, train, evaluate, lambda: None, f"PyTorch {torch.__version__}")
    versions = (
        f"PyTorch {torch.__version__}, CUDA {torch.version.cuda}, "
        f"cuDNN {torch.backends.cudnn.version()}, {torch.cuda.get_device_name()}"
    )
    return Tasks(send, train, evaluate, torch.cuda.synchronize, versions)


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
        for _ in range(_WARM_UP):
            run(*arrays)
        steps = max(2, round(seconds / elapsed(tasks, run, arrays, 2) * 2))
        return size * steps / elapsed(tasks, run, arrays, steps)
    except Exception as error:  # the other measurements must go on
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
            answer = measure(tasks, request["task"], request["batch"], request["seconds"])
            give_memory_back()
        print(json.dumps(answer), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
