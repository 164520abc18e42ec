"""Programs of networks: the same outputs as Chainer's, for any batch, threads and network."""

import random
import threading
import weakref

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st
from network_helpers import assert_equal_outputs, make_trained, narrow, outputs, some_planes

from pydlshogi.compat import chainer
from pydlshogi.features import LABEL_NUM
from pydlshogi.inference.compiler import Life, compile_network, share_memory
from pydlshogi.inference.steps import make_filters
from pydlshogi.layers.convolution import Convolution2D
from pydlshogi.layers.cpu.threads import set_threads
from pydlshogi.model_files.fold import fold_for_play
from pydlshogi.network.network import Network
from pydlshogi.network.registry import NETWORKS

F = chainer.functions
L = chainer.links


@pytest.fixture(autouse=True)
def machines_threads():
    yield
    set_threads(None)


def folded(name, channels=16, seed=1):
    return fold_for_play(make_trained(name, seed, **narrow(name, channels)))


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("name", NETWORKS)
def test_a_program_computes_the_outputs_of_its_network(name, threads):
    set_threads(threads)
    network = folded(name)
    program = compile_network(network)
    assert program is not None
    for boards in (1, 3, 4, 5, 9, 20):
        planes = some_planes(boards, boards, network.plane_num)
        found = program(planes)
        expected = outputs(network, planes)
        if boards > 1:
            assert_equal_outputs(found, expected)
        for one, other in zip(found, expected):
            assert one.shape == other.shape
            assert (one.dtype, one.flags.c_contiguous) == (numpy.float32, True)
            numpy.testing.assert_allclose(one, other, atol=1e-4 * abs(other).max())


@pytest.mark.long
@pytest.mark.parametrize("threads", [1, 2, 4])
@pytest.mark.parametrize("channels", [7, 70, 200])
def test_layers_of_several_blocks_of_any_width_are_computed(channels, threads):
    set_threads(threads)
    network = folded("policy_value", channels)
    program = compile_network(network)
    for boards in (2, 6):
        planes = some_planes(boards)
        assert_equal_outputs(program(planes), outputs(network, planes))


def test_a_program_works_with_another_number_of_threads_than_it_was_made_for():
    network, planes = folded("policy_value_resnet", 96), some_planes(4)
    set_threads(2)
    program = compile_network(network)
    for threads in (1, 2, 5):
        set_threads(threads)
        assert_equal_outputs(program(planes), outputs(network, planes))


class Random(Network):
    """A network of random functions: values that are used twice, sums, concatenations."""

    value_kind = None

    def __init__(self, seed):
        super().__init__()
        chance = random.Random(seed)
        numpy.random.seed(seed)
        self.plan = []
        channels = [104]  # of each value so far
        kinds = ("3x3", "3x3", "3x3", "1x1", "relu", "add", "concat", "bias", "scale", "slice")
        for number in range(chance.randint(2, 10)):
            kind, source = chance.choice(kinds), chance.randrange(len(channels))
            other = source
            if kind in ("3x3", "1x1"):
                size = int(kind[0])
                outs = chance.choice([channels[source], 5, 33])
                relu, bias = chance.random() < 0.4, chance.random() < 0.5
                link = Convolution2D(
                    channels[source], outs, size, pad=size // 2, nobias=not bias, relu=relu
                )
                if bias:
                    link.b.array[...] = numpy.random.normal(size=outs)
                self.add_link(f"conv{number}", link)
                channels.append(outs)
            elif kind == "add":
                equal = [n for n, size in enumerate(channels) if size == channels[source]]
                other = chance.choice(equal)
                channels.append(channels[source])
            elif kind == "concat":
                other = chance.randrange(len(channels))
                channels.append(channels[source] + channels[other])
            elif kind == "slice":
                channels.append(-(-channels[source] // 2))
            else:
                channels.append(channels[source])
                if kind == "bias":
                    link = L.Bias(shape=(channels[source],))
                    link.b.array[...] = numpy.random.normal(size=channels[source])
                    self.add_link(f"bias{number}", link)
            self.plan.append((kind, source, other))
        with self.init_scope():
            self.last = Convolution2D(channels[-1], 27, 1)

    def forward(self, x):
        values = [chainer.as_variable(x)]
        for number, (kind, source, other) in enumerate(self.plan):
            h = values[source]
            if kind in ("3x3", "1x1"):
                h = self[f"conv{number}"](h)
            elif kind == "relu":
                h = F.relu(h)
            elif kind == "add":
                h = h + values[other]
            elif kind == "concat":
                h = F.concat((h, values[other]), axis=1)
            elif kind == "bias":
                h = self[f"bias{number}"](h)
            elif kind == "scale":
                h = 0.5 * h + 0.25
            else:
                h = h[:, ::2]
            values.append(h)
        return F.reshape(self.last(values[-1]), (-1, LABEL_NUM))


@pytest.mark.long
@pytest.mark.parametrize("seed", range(40))
def test_a_network_of_random_functions_gets_a_program(seed):
    network = Random(seed)
    set_threads(1 + seed % 3)
    program = compile_network(network)
    assert program is not None
    for boards in (2, 6):
        planes = some_planes(boards)
        (found,), (expected,) = program(planes), outputs(network, planes)
        numpy.testing.assert_allclose(found, expected, atol=1e-5 * abs(expected).max())


def test_results_are_not_used_again():
    program = compile_network(folded("policy_value"))
    for boards in (2, 6):
        first = program(some_planes(boards))
        kept = [array.copy() for array in first]
        program(some_planes(boards, seed=9))
        for array, copy in zip(first, kept):
            numpy.testing.assert_array_equal(array, copy)


@pytest.mark.long
@pytest.mark.parametrize("threads", [1, 2])
def test_programs_in_several_threads_do_not_disturb_one_another(threads):
    set_threads(threads)
    tasks = []
    for seed, (name, boards) in enumerate(
        [("policy_value", 3), ("policy_value_resnet", 6), ("policy", 1), ("value", 20)]
    ):
        program = compile_network(folded(name, seed=seed + 1))
        planes = some_planes(boards, seed=seed)
        tasks.append((program, planes, program(planes)))
    wrong = []

    def work(program, planes, expected):
        for _ in range(30):
            if not all(map(numpy.array_equal, program(planes), expected)):
                wrong.append(program)

    workers = [threading.Thread(target=work, args=task) for task in tasks for _ in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not wrong


class Other(Network):
    """A network with one function that differs from test to test."""

    def __init__(self, function):
        super().__init__()
        self.function = function
        with self.init_scope():
            self.conv = Convolution2D(104, 27, 3, pad=1)

    def forward(self, x):
        return F.reshape(self.function(self.conv(x), x), (-1, LABEL_NUM))


def frozen(h):
    """Cuts off what was computed so far from the graph."""
    h.unchain_backward()
    return h


@pytest.mark.parametrize(
    "function",
    [
        lambda h, x: F.elu(h),
        lambda h, x: F.max_pooling_2d(h, 3, stride=1, pad=1),
        lambda h, x: h[1:],
        # A program takes what no recorded function computes for a constant.
        lambda h, x: h + chainer.backends.cuda.to_cpu(abs(h.array).max()),
        lambda h, x: h * h.array.mean(axis=0, keepdims=True),
        lambda h, x: F.relu(frozen(h)),
    ],
    ids=["unknown function", "pooling", "some boards", "hidden number", "hidden array", "frozen"],
)
def test_other_networks_get_no_program(function):
    if function(chainer.Variable(numpy.zeros((7, 27, 9, 9), numpy.float32)), None).shape[0] != 7:
        network = Other(lambda h, x: F.concat((function(h, x), h[:1]), axis=0))
    else:
        network = Other(function)
    assert compile_network(network) is None


def test_a_network_that_takes_arrays_alone_gets_no_program():
    assert compile_network(Other(lambda h, x: h * (x[:, :1] > 0).astype("f"))) is None


def test_a_network_may_have_another_dimension_of_the_size_of_the_traced_batch():
    def sevens(h, x):
        part = F.reshape(h[:, :7], (-1, 7, 81))
        return F.concat((F.reshape(part, (-1, 7, 9, 9)), h[:, 7:]), axis=1)

    network, planes = Other(sevens), some_planes(5)
    (found,) = compile_network(network)(planes)
    numpy.testing.assert_allclose(found, outputs(network, planes)[0], rtol=0, atol=1e-5)


def test_a_network_that_moves_the_batch_behind_such_a_dimension_is_no_error():
    def turned(h, x):
        part = F.reshape(F.transpose(h[:, :7], (1, 0, 2, 3)), (7, -1, 81))
        part = F.transpose(F.reshape(part, (7, -1, 9, 9)), (1, 0, 2, 3))
        return F.concat((part, h[:, 7:]), axis=1)

    assert compile_network(Other(turned)) is None


def test_chainers_normalization_is_part_of_a_program():
    network = Other(lambda h, x: network.after(network.before(h)))
    random = numpy.random.RandomState(1)
    with network.init_scope():
        network.before = L.BatchNormalization(27)
        network.after = L.BatchNormalization(27, eps=1e-3, use_gamma=False)
    for link in (network.before, network.after):
        link.avg_mean[...] = random.randn(27)
        link.avg_var[...] = random.rand(27) + 0.5
        link.beta.array[...] = random.randn(27)
    network.before.gamma.array[...] = random.rand(27) + 0.5
    planes = some_planes(5)
    (found,) = compile_network(network)(planes)
    numpy.testing.assert_allclose(found, outputs(network, planes)[0], rtol=1e-4, atol=1e-4)


def test_a_normalization_over_other_axes_gets_no_program():
    network = Other(lambda h, x: network.norm(h))
    with network.init_scope():
        network.norm = L.BatchNormalization((27, 9), axis=(0, 3))
    assert compile_network(network) is None


def test_other_convolutions_than_ours_get_no_program():
    network = Other(lambda h, x: h)
    network.conv = Convolution2D(104, 27, 3, pad=2, dilate=2)
    assert compile_network(network) is None
    network.conv = L.Convolution2D(104, 27, 5, pad=2)
    assert compile_network(network) is None


def test_a_network_whose_outputs_are_not_finite_gets_no_program():
    network = folded("policy")
    network.l3.W.array[...] = numpy.nan
    with numpy.errstate(invalid="ignore"):
        assert compile_network(network) is None


@pytest.mark.parametrize("threads", [1, 2])
def test_the_numbers_of_boards_before_do_not_matter(threads):
    set_threads(threads)
    program = compile_network(folded("policy_value_resnet"))
    batches = {boards: some_planes(boards, boards) for boards in (1, 2, 3, 4, 7, 20)}
    first = {boards: program(planes) for boards, planes in batches.items()}
    for boards in (20, 1, 4, 7, 3, 1, 2, 4):
        for one, other in zip(program(batches[boards]), first[boards]):
            numpy.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("boards", [1, 6])
def test_a_program_does_not_keep_its_input(boards):
    program = compile_network(folded("policy_value"))
    planes = some_planes(boards)
    program(planes)
    kept = weakref.ref(planes)
    del planes
    assert kept() is None


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("channels", [5, 70, 192, 200])
def test_the_pieces_of_the_filters_are_contiguous_narrow_and_complete(channels, threads):
    W = numpy.random.RandomState(0).standard_normal((channels, 3, 3, 3)).astype(numpy.float32)
    ((*blocks,),) = make_filters([W], threads)
    pieces = [piece for block in blocks for piece in block]
    assert all(piece.flags.c_contiguous and piece.shape[2] <= 64 for piece in pieces)
    together = numpy.concatenate(pieces, axis=2)
    # The first point is (0, 0), where a filter's value is a quarter of its first number.
    numpy.testing.assert_allclose(together[0], W[:, :, 0, 0].T / 4, rtol=1e-6)


lives = st.lists(st.tuples(st.integers(0, 20), st.integers(0, 8)), max_size=15)


@given(lives)
def test_slots_that_are_needed_at_the_same_time_have_different_memory(starts):
    by_slot = {n: Life(1, first, first + length) for n, (first, length) in enumerate(starts)}
    slots = share_memory(by_slot)
    assert sorted(slot.number for slot in slots) == sorted(by_slot)
    for one in slots:
        for other in slots:
            if one.number != other.number and one.register == other.register:
                life, other_life = by_slot[one.number], by_slot[other.number]
                assert life.last < other_life.first or other_life.last < life.first
