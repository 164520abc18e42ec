"""The process of one side of benchmarks/gpu.py.

Arguments: the side, its number format (float32, tf32, mixed16, bf16) and the device (cuda
or cpu). Each line of standard input is a JSON object; each answer is a line of JSON.
``{"versions": true}`` asks for the versions of the libraries. ``{"batch": N, "steps": N}``
asks for the seconds of that many training steps; the answer is null if the memory does
not suffice.
"""

from __future__ import annotations

import gc
import json
import platform
import sys
import time
from typing import Any, Callable

import numpy
from network_worker import LEARNING_RATE, batch, torch_network


def chainer_side(convolution: str, numbers: str, device_name: str) -> tuple[Any, Any, Any, str]:
    """Returns three functions (copy a batch, run a step, synchronize) and the versions."""
    from pydlshogi.compat import chainer
    from pydlshogi.network.cpu.convolution import set_convolution
    from pydlshogi.network.policy import PolicyNetwork

    if numbers == "mixed16":
        chainer.global_config.dtype = chainer.mixed16
    device = chainer.get_device("@cupy:0" if device_name == "cuda" else "@numpy")
    device.use()
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

    def step(x: Any, t: Any) -> None:
        optimizer.update(lambda: chainer.functions.softmax_cross_entropy(network(x), t))

    versions = f"Chainer {chainer.__version__}, numpy {numpy.__version__}"
    if device_name != "cuda":
        return send, step, lambda: None, versions
    import cupy

    card = cupy.cuda.runtime.getDeviceProperties(0)["name"].decode()
    cuda = cupy.cuda.runtime.runtimeGetVersion()
    versions += f", CuPy {cupy.__version__}, CUDA {cuda}, {card}"
    return send, step, cupy.cuda.Device().synchronize, versions


def torch_side(numbers: str, device_name: str) -> tuple[Any, Any, Any, str]:
    """Returns three functions (copy a batch, run a step, synchronize) and the versions."""
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

    def step(x: Any, t: Any) -> None:
        optimizer.zero_grad()
        with torch.autocast(device_name, torch.bfloat16, enabled=numbers == "bf16"):
            loss = torch.nn.functional.cross_entropy(network(x), t)
        loss.backward()
        optimizer.step()

    if device_name != "cuda":
        return send, step, lambda: None, f"PyTorch {torch.__version__}"
    versions = (
        f"PyTorch {torch.__version__}, CUDA {torch.version.cuda}, "
        f"cuDNN {torch.backends.cudnn.version()}, {torch.cuda.get_device_name()}"
    )
    return send, step, torch.cuda.synchronize, versions


def give_memory_back() -> None:
    """Frees the memory pools of CuPy and PyTorch, for the other sides."""
    gc.collect()
    if "torch" in sys.modules:
        sys.modules["torch"].cuda.empty_cache()
    if "cupy" in sys.modules:
        sys.modules["cupy"].get_default_memory_pool().free_all_blocks()


def seconds(
    send: Callable[..., Any],
    step: Callable[..., Any],
    wait: Callable[[], Any],
    size: int,
    steps: int,
) -> float | None:
    """Times steps on a batch that is on the device; None if the memory does not suffice."""
    try:
        arrays = send(*batch(size))
        for _ in range(3):
            step(*arrays)
        wait()
        start = time.perf_counter()
        for _ in range(steps):
            step(*arrays)
        wait()
        return time.perf_counter() - start
    except (MemoryError, RuntimeError) as error:
        if "out of memory" not in str(error).lower():
            raise
        return None


def main() -> int:
    """Answers requests until standard input ends."""
    side, numbers, device_name = sys.argv[1:]
    if side == "torch":
        send, step, wait, versions = torch_side(numbers, device_name)
    else:
        send, step, wait, versions = chainer_side(side, numbers, device_name)
    for line in sys.stdin:
        request = json.loads(line)
        answer: Any
        if "versions" in request:
            answer = f"{versions}, Python {platform.python_version()}"
        else:
            answer = seconds(send, step, wait, request["batch"], request["steps"])
            give_memory_back()
        print(json.dumps(answer), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
