"""The process of one side of benchmarks/network.py.

    python benchmarks/network_worker.py SIDE THREADS MODEL

MODEL is the ONNX model of the sides onnxruntime and openvino; other sides ignore it.

Each line of standard input is a JSON object; each answer is a line of JSON.
``{"versions": true}`` asks for the versions of the libraries.
``{"task": "forward" or "step", "batch": N, "repeats": N}`` asks for the seconds of each
repetition. ``{"peak": N}`` trains some steps at batch size N. It asks for the memory of
the process in bytes, before them and at the peak. ``{"export": PATH}`` asks ours for its
network as an ONNX model.

Only the sides ours and chainer import pydlshogi: the environments of the others need not have
it.
"""

from __future__ import annotations

import json
import platform
import re
import sys
import time
from typing import Any, Callable

import numpy

PLANES, FILTERS, DIRECTIONS, SIDE = 104, 192, 27, 9
LAYERS = 12
LEARNING_RATE = 0.01


def batch(size: int) -> tuple[Any, Any]:
    """Makes random planes, as sparse as real ones, and labels."""
    random = numpy.random.RandomState(size)
    x = (random.rand(size, PLANES, SIDE, SIDE) < 0.1).astype(numpy.float32)
    return x, random.randint(0, DIRECTIONS * SIDE**2, size)


def chainer_side(ours: bool) -> tuple[Any, Callable[..., Any], Callable[..., Any], str]:
    """Returns the network, the two tasks and the versions, for this package.

    Args:
        ours: Whether to compute as play and training do, or by Chainer's own convolution.
    """
    import threadpoolctl

    from pydlshogi.compat import chainer
    from pydlshogi.inference.compiler import compile_network
    from pydlshogi.layers.convolution import set_convolution
    from pydlshogi.network.policy import PolicyNetwork

    F = chainer.functions
    set_convolution("auto" if ours else "chainer")
    network = PolicyNetwork()
    program = compile_network(network) if ours else None
    optimizer = chainer.optimizers.SGD(lr=LEARNING_RATE)
    optimizer.setup(network)

    def forward(x: Any, t: Any) -> Any:
        if program is not None:
            return program(x)
        with chainer.using_config("train", False), chainer.no_backprop_mode():
            return network(x).array

    def step(x: Any, t: Any) -> Any:
        optimizer.update(lambda: F.softmax_cross_entropy(network(x), t.astype(numpy.int32)))

    blas = threadpoolctl.ThreadpoolController().select(user_api="blas").info()
    names = ", ".join(
        f"{b['internal_api']} {b['version']} {b.get('architecture', '')} {b['num_threads']} threads"
        for b in blas
    )
    versions = f"Chainer {chainer.__version__}, numpy {numpy.__version__}, {names}"
    return network, forward, step, versions


def onnxruntime_side(model: str, threads: int) -> tuple[Callable[..., Any], str]:
    """Returns the forward pass and the versions, for ONNX Runtime."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])

    def forward(x: Any, t: Any) -> Any:
        return session.run(None, {"planes": x})[0]

    return forward, f"ONNX Runtime {onnxruntime.__version__}, {threads} threads"


def openvino_side(model: str, threads: int) -> tuple[Callable[..., Any], str]:
    """Returns the forward pass and the versions, for OpenVINO."""
    import openvino

    # Without the hint, a processor with bfloat16 computes in it, and not to 1e-4.
    settings = {
        "INFERENCE_NUM_THREADS": threads,
        "PERFORMANCE_HINT": "LATENCY",
        "INFERENCE_PRECISION_HINT": "f32",
    }
    compiled = openvino.Core().compile_model(model, "CPU", settings)

    def forward(x: Any, t: Any) -> Any:
        return compiled(x)[0]

    return forward, f"OpenVINO {openvino.__version__}, {threads} threads"


def torch_network() -> Any:
    """Makes the same network in PyTorch."""
    import torch
    from torch import nn

    class Network(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            layers: list[Any] = []
            for n in range(LAYERS):
                layers += [nn.Conv2d(FILTERS if n else PLANES, FILTERS, 3, padding=1), nn.ReLU()]
            layers.append(nn.Conv2d(FILTERS, DIRECTIONS, 1, bias=False))
            self.layers = nn.Sequential(*layers)
            self.bias = nn.Parameter(torch.zeros(DIRECTIONS * SIDE**2))

        def forward(self, x: Any) -> Any:
            return self.layers(x).reshape(len(x), -1) + self.bias

    return Network()


def torch_side(
    channels_last: bool, threads: int
) -> tuple[Callable[..., Any], Callable[..., Any], str]:
    """Returns the two tasks and the versions, for PyTorch."""
    import torch

    torch.set_num_threads(threads)
    layout = torch.channels_last if channels_last else torch.contiguous_format
    network = torch_network().to(memory_format=layout)
    optimizer = torch.optim.SGD(network.parameters(), lr=LEARNING_RATE)

    def forward(x: Any, t: Any) -> Any:
        with torch.inference_mode():
            return network(torch.from_numpy(x).contiguous(memory_format=layout))

    def step(x: Any, t: Any) -> Any:
        optimizer.zero_grad()
        logits = network(torch.from_numpy(x).contiguous(memory_format=layout))
        torch.nn.functional.cross_entropy(logits, torch.from_numpy(t)).backward()
        optimizer.step()

    config = torch.__config__.show()
    libraries = re.findall(r"(Math Kernel Library|MKL-DNN) (?:Version |v)(\S+)", config)
    names = [" ".join(library) for library in libraries] or ["BLAS unknown"]
    versions = f"PyTorch {torch.__version__}, {', '.join(names)}, {torch.get_num_threads()} threads"
    return forward, step, versions


def main() -> int:
    """Answers requests until standard input ends."""
    side, threads, model = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    network: Any = None
    step: Any = None
    if side.startswith("torch"):
        forward, step, versions = torch_side(side == "torch channels_last", threads)
    elif side == "onnxruntime":
        forward, versions = onnxruntime_side(model, threads)
    elif side == "openvino":
        forward, versions = openvino_side(model, threads)
    else:
        network, forward, step, versions = chainer_side(side == "ours")
    tasks = {"forward": forward, "step": step}
    data: dict[int, Any] = {}
    for line in sys.stdin:
        request = json.loads(line)
        answer: Any
        if "versions" in request:
            answer = f"{versions}, Python {platform.python_version()}"
        elif "export" in request:
            from pydlshogi.model_files.onnx_export import export, save

            save(export(network), request["export"])
            answer = True
        elif "peak" in request:
            import resource  # Windows has no such module

            before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            x, t = batch(request["peak"])
            for _ in range(3):
                step(x, t)
            after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            answer = [before * 1024, after * 1024]  # Linux counts in KiB
        else:
            size = request["batch"]
            x, t = data.setdefault(size, batch(size))
            task = tasks[request["task"]]
            for _ in range(2):
                task(x, t)
            answer = []
            for _ in range(request["repeats"]):
                start = time.perf_counter()
                task(x, t)
                answer.append(time.perf_counter() - start)
        print(json.dumps(answer), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
