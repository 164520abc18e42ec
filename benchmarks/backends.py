"""Times the backends, also as on an older processor, and measures what they predict.

    python benchmarks/backends.py [--model FILE] [--rounds 15] [--instructions avx2]
        [--list LIST] [--positions 6000]

- Evaluations a second of the bare network by each backend. The rounds alternate, and the figure
  is the median. --instructions switches off the instructions of newer processors, in numpy,
  OpenBLAS and OpenVINO. It also hides bfloat16, which those processors lack.
- With --list: the losses of each backend, and the shares of the moves and winners that it
  predicts, in positions of a list of kifu. Then how far its answers are from our own. The
  positions are chosen at random, but are the same each time.
"""

from __future__ import annotations

import openblas  # noqa: F401

# isort: split
import argparse
import os
import statistics
import sys
import time
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(REPOSITORY))

from pydlshogi.commands.arguments import positive_int  # noqa: E402  (without numpy)

_AVX512 = "AVX512F AVX512CD AVX512_SKX AVX512_CLX AVX512_CNL AVX512_ICL AVX512_SPR"

#: For each set of instructions: those of OpenVINO and of OpenBLAS, and what numpy must not use.
INSTRUCTIONS = {
    "avx2": ("AVX2", "Haswell", _AVX512),
    "avx2_vnni": ("AVX2_VNNI", "Haswell", _AVX512),
    "avx512": ("AVX512_CORE", "SkylakeX", ""),
    "avx512_vnni": ("AVX512_CORE_VNNI", "SkylakeX", ""),
}

#: Batch sizes of the speeds.
SIZES = (1, 4, 8, 16, 32)


def parse() -> argparse.Namespace:
    """Reads the options."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", type=Path, help="default: the shipped model with two heads")
    parser.add_argument("--rounds", type=positive_int, default=15)
    parser.add_argument("--instructions", choices=INSTRUCTIONS)
    parser.add_argument("--list", help="list of kifu for the predictions")
    parser.add_argument("--positions", type=positive_int, default=6000)
    return parser.parse_args()


def use(instructions: str) -> None:
    """Switches off newer instructions. Must be called before the import of numpy."""
    openvino_name, openblas_name, numpy_names = INSTRUCTIONS[instructions]
    os.environ["ONEDNN_MAX_CPU_ISA"] = openvino_name
    os.environ["OPENBLAS_CORETYPE"] = openblas_name
    os.environ["NPY_DISABLE_CPU_FEATURES"] = numpy_names
    try:
        import openvino
    except ImportError:
        raise SystemExit("--instructions needs openvino, which is not installed.") from None

    class Core(openvino.Core):
        """Hides bfloat16."""

        def get_property(self, *names):
            found = super().get_property(*names)
            return [kind for kind in found if kind != "BF16"] if type(found) is list else found

    openvino.Core = Core


def main() -> int:
    """Measures the backends and prints tables as Markdown."""
    arguments = parse()
    if arguments.instructions:
        use(arguments.instructions)
    from sides import processor

    from pydlshogi.device import select_device
    from pydlshogi.files import shipped_model
    from pydlshogi.inference.backend import BACKENDS, OWN, BackendError
    from pydlshogi.inference.evaluator import Evaluator
    from pydlshogi.layers.cpu.threads import get_threads

    print(f"{get_threads()} threads, {processor()}, {arguments.instructions or 'all instructions'}")
    path = arguments.model or shipped_model("model_policy_value")
    evaluators = {}
    for name in (OWN, *BACKENDS[2:]):  # after auto and own
        try:
            evaluators[name] = Evaluator(path, select_device(-1), name)
        except BackendError as error:
            print(f"\n{error}")
    if not (evaluators[OWN].has_policy and evaluators[OWN].has_value):
        raise SystemExit(f"{path} has not both heads: name a model with a policy and a value.")
    time_backends(evaluators, arguments.rounds)
    if arguments.list:
        compare_predictions(evaluators, arguments.list, arguments.positions)
    return 0


def time_backends(evaluators: dict, rounds: int) -> None:
    """Prints evaluations a second."""
    from pydlshogi.model_files.agreement import planes_of_random_games

    (plane_num,) = {evaluator.plane_num for evaluator in evaluators.values()}
    planes = planes_of_random_games(max(SIZES), plane_num, every=3)
    print("\n| evaluations/s | " + " | ".join(evaluators) + " |")
    print("|---|" + "--:|" * len(evaluators))
    for size in SIZES:
        seconds: dict[str, list[float]] = {name: [] for name in evaluators}
        for number in range(rounds + 1):
            for name, evaluator in evaluators.items():
                start = time.perf_counter()
                evaluator.evaluate(planes[:size])
                if number:  # the first evaluation prepares arrays
                    seconds[name].append(time.perf_counter() - start)
        rates = [f"{size / statistics.median(times):.0f}" for times in seconds.values()]
        print(f"| batch {size} | {' | '.join(rates)} |", flush=True)


def compare_predictions(evaluators: dict, kifu_list: str, number: int) -> None:
    """Prints what the backends predict in positions of a list."""
    import numpy

    from pydlshogi.device import select_device
    from pydlshogi.kifu.loading import load_positions
    from pydlshogi.training.batches import PlanesConverter

    positions = load_positions(kifu_list).positions
    chosen = numpy.sort(numpy.random.RandomState(0).permutation(len(positions))[:number])
    (plane_num,) = {evaluator.plane_num for evaluator in evaluators.values()}
    convert = PlanesConverter(positions, plane_num=plane_num)
    totals: dict[str, list[numpy.ndarray]] = {name: [] for name in evaluators}
    for part in numpy.array_split(chosen, -(-len(chosen) // 64)):
        planes, labels, results = convert(part.tolist(), select_device(-1))
        answers = [evaluator.evaluate(planes) for evaluator in evaluators.values()]
        for name, answer in zip(evaluators, answers):
            totals[name].append(_measure(answer, answers[0], labels, results))
    print(f"\n{len(chosen)} of {len(positions)} positions of {kifu_list}\n")
    print("| backend | policy loss | moves | value loss | winners ", end="")
    print("| same move as own | logit, mean difference | value, mean difference | largest |")
    print("|---|" + "--:|" * 8)
    for name, parts in totals.items():
        figures = numpy.hstack(parts)
        loss, moves, value_loss, winners, same, logit, value = numpy.nanmean(figures, axis=1)
        print(
            f"| {name} | {loss:.4f} | {moves:.2%} | {value_loss:.4f} | {winners:.2%} "
            f"| {same:.2%} | {logit:.2g} | {value:.2g} | {figures[-1].max():.2g} |"
        )


def _measure(answer, own, labels, results):
    """Returns the seven figures of each position, (7, n); nan where a game has no winner."""
    import numpy

    logits = answer.logits.astype(numpy.float64)
    logits -= logits.max(1, keepdims=True)
    losses = numpy.log(numpy.exp(logits).sum(1)) - logits[numpy.arange(len(labels)), labels]
    wins = numpy.clip(answer.wins.astype(numpy.float64), 1e-12, 1 - 1e-12)
    value_losses = -results * numpy.log(wins) - (1 - results) * numpy.log(1 - wins)
    winners = numpy.where(results == 0.5, numpy.nan, (wins > 0.5) == (results > 0.5))
    best = logits.argmax(1)
    return numpy.stack(
        [
            losses,
            best == labels,
            value_losses,
            winners,
            best == own.logits.argmax(1),
            abs(answer.logits - own.logits).mean(1),
            abs(answer.wins - own.wins),
        ]
    )


if __name__ == "__main__":
    sys.exit(main())
