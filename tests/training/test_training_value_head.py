"""Training of the value head alone."""

from pathlib import Path

import numpy
import pytest
from network_helpers import narrow
from training_fixtures import REPOSITORY
from training_helpers import assert_same_files

from pydlshogi.commands import train_policy, train_policy_value
from pydlshogi.compat import chainer
from pydlshogi.features import make_input_planes
from pydlshogi.kifu.loading import load_positions
from pydlshogi.model_files.model_file import load_network, save_model
from pydlshogi.network.registry import NETWORKS, make_network
from pydlshogi.training import log
from pydlshogi.training.loss import Loss
from pydlshogi.training.optimizer import ValueHead, make_optimizer
from pydlshogi.training.recipe import Recipe
from pydlshogi.training.trainer import Settings, Task, train

GAMES = sorted((REPOSITORY / "kifu" / "train").glob("*.csa"))
WITH_VALUE = sorted(name for name in NETWORKS if "value" in name)


def small(name):
    """A small network with running statistics that differ from the first ones."""
    numpy.random.seed(1)
    network = make_network(name, **narrow(name, 16))
    for parameter in network.params():
        if parameter.ndim == 4:  # small layers would lose the signal
            parameter.array *= 2
    for link in network.links():
        if hasattr(link, "avg_mean"):
            link.avg_mean[...] = 0.1 * numpy.random.randn(*link.avg_mean.shape)
            link.avg_var[...] = 0.5 + numpy.random.rand(*link.avg_var.shape)
    return network


@pytest.fixture(scope="module")
def positions(tmp_path_factory):
    path = tmp_path_factory.mktemp("list") / "games.txt"
    path.write_text(f"{GAMES[0]}\n")
    return load_positions(path).records


def arrays(network):
    return {name: numpy.array(a) for name, a in chainer.serializers.npz.serialize(network).items()}


@pytest.mark.long
@pytest.mark.parametrize("name", WITH_VALUE)
def test_only_the_arrays_of_the_value_head_change(name, positions, device, tmp_path):
    network = small(name)
    before = arrays(network)
    recipe = Recipe(lr=0.1, momentum=0.9, weight_decay=1e-2, clip=1.0, value_head_only=True)
    optimizer = make_optimizer(ValueHead(network), recipe)
    settings = Settings(
        tmp_path / "model", tmp_path / "state", batchsize=8, iterations=3, recipe=recipe
    )
    train(Task(network, optimizer, positions, positions[:8], settings, device))
    after = arrays(load_network(tmp_path / "model"))
    changed = {name for name in before if not numpy.array_equal(before[name], after[name])}
    assert {name.split("/")[0] for name in changed} == set(network.value_head)
    head = {name for name, _ in ValueHead(network).namedparams()}
    assert {f"/{name}" for name in changed} >= head


@pytest.mark.parametrize("name", ["policy_value", "policy_value_hand1x1_resnet"])
def test_the_gradient_is_that_of_the_value_loss_of_the_whole_network(name, positions):
    whole, network = small(name), small(name)
    planes = make_input_planes(positions[:8])
    wins = numpy.array([0, 1] * 4, numpy.float32)
    labels = positions["label"][:8].astype(numpy.int32)
    head = ValueHead(network)
    whole.cleargrads()
    network.cleargrads()
    with chainer.using_config("train", True):
        reporter = chainer.Reporter()
        reporter.add_observer("main", head)
        with reporter:
            Loss(head)(planes, labels, wins).backward()
    # Of the whole network, the trunk computes as in play and the head as in training.
    with chainer.using_config("train", False):
        h = whole.trunk(planes)
    values = whole.value(h)
    kind = whole.value_kind
    (chainer.functions.sum(kind.losses(values, wins)) / 8).backward()
    for path, parameter in head.namedparams():
        expected = dict(whole.namedparams())[path].grad
        numpy.testing.assert_allclose(parameter.grad, expected, rtol=1e-4, atol=1e-7)
        assert numpy.abs(expected).max() > 0
    assert all(parameter.grad is None for parameter in network.l1.params())


OPTIONS = "train.txt test.txt --gpu -1 -b 4 --test_batchsize 8 --seed 1 --value_head_only"


def program(options, program=train_policy_value):
    return program.main([*OPTIONS.split(), *options.split()])


@pytest.fixture
def model(folder):
    """The current folder has lists and a model."""
    save_model("first", small("policy_value"))
    return Path("first")


def test_an_interrupted_run_is_resumed_to_the_last_bit(model):
    files = "--model {0} --state {0}.state --momentum 0.9 -i 1"
    assert program(f"{files.format('whole')} --initmodel first --iterations 3") == 0
    assert program(f"{files.format('part')} --initmodel first --iterations 2") == 0
    again = "--initmodel part --resume part.state --iterations 1"
    assert program(f"{files.format('part')} {again}") == 0
    assert_same_files("whole", "part")


def test_the_log_is_that_of_a_value_network(model, capsys):
    assert program("--initmodel first --model m --state s -i 1 --iterations 1") == 0
    lines = [line for line in capsys.readouterr().err.splitlines() if "iteration = 1" in line]
    assert lines and not any("policy" in line for line in lines)
    assert program("--initmodel first --model m --state s -i 1 --iterations 1 --log log") == 0
    (curve,) = log.read_log(Path("log").read_text(encoding="utf-8").splitlines())
    assert curve.value_head_only


@pytest.mark.long
def test_a_run_does_not_continue_one_of_both_heads(model, capsys):
    words = "train.txt test.txt --gpu -1 -b 4 --seed 1 --iterations 1 --model m --state s"
    assert train_policy_value.main(words.split()) == 0
    assert program("--initmodel m --resume s --model m --state s --iterations 1") == 1
    error = capsys.readouterr().err
    assert "trained other heads" in error and "value_head_only" in error
    assert "Traceback" not in error


def test_a_run_of_both_heads_does_not_continue_one_of_the_value_head(model, capsys):
    assert program("--initmodel first --model m --state s --iterations 1 --momentum 0.9") == 0
    words = "train.txt test.txt --gpu -1 -b 4 --seed 1 --iterations 1 --model m --state s"
    again = f"{words} --initmodel m --resume s --momentum 0.9".split()
    assert train_policy_value.main(again) == 1
    error = capsys.readouterr().err
    assert "value_head_only as before" in error
    assert "Traceback" not in error


def test_a_value_network_notices_the_other_option_too(model, capsys):
    words = "train.txt test.txt --gpu -1 -b 4 --seed 1 --iterations 1 --network value"
    save_model("first", small("value"))
    files = "--model m --state s"
    assert train_policy.main(f"{words} --initmodel first {files}".split()) == 0
    again = f"{words} --initmodel m --resume s {files} --value_head_only".split()
    assert train_policy.main(again) == 1
    assert "trained other heads" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ("--network policy --initmodel first", "policy has none"),
        ("", "give their model as --initmodel"),
        ("--initmodel first --policy_target visits", "--policy_target has no effect"),
    ],
)
def test_a_wrong_command_line_gets_one_sentence(model, capsys, options, sentence):
    with pytest.raises(SystemExit) as status:
        program(options)
    assert status.value.code == 2
    assert sentence in capsys.readouterr().err
    assert not Path("m").exists()


OWN_NETWORK = """
import chainer
from pydlshogi.network.network import Network
from pydlshogi.network.value_kind import WinLogit


class MyNetwork(Network):
    value_kind = WinLogit
    has_policy = False
    value_head = {names}

    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.layer = chainer.links.Convolution2D(104, 2, ksize=1)
            self.last = chainer.links.Linear(2 * 81, 1)

    def trunk(self, x):
        return chainer.functions.relu(self.layer(x))

    def value(self, h):
        return self.last(h)

    def forward(self, x):
        return self.value(self.trunk(x))
"""


@pytest.mark.parametrize("names", ['("last",)', "()", '"last"', '("first",)'])
def test_a_network_of_the_user_names_its_value_head(folder, capsys, names):
    has_names = names == '("last",)'
    file = f"names_{len(names)}.py"
    Path(file).write_text(OWN_NETWORK.format(names=names), encoding="utf-8")
    words = f"train.txt test.txt --gpu -1 -b 4 --seed 1 --iterations 1 --network {file}:MyNetwork"
    assert train_policy.main([*words.split(), "--model", "first", "--state", "s"]) == 0
    again = [*words.split(), "--value_head_only", "--initmodel", "first", "--model", "m"]
    assert train_policy.main([*again, "--state", "s2"]) == (0 if has_names else 1)
    if not has_names:
        error = capsys.readouterr().err
        assert "MyNetwork does not say what its value head is" in error
        assert "Traceback" not in error
        return
    with numpy.load("first") as first, numpy.load("m") as second:
        assert numpy.array_equal(first["layer/W"], second["layer/W"])
        assert not numpy.array_equal(first["last/W"], second["last/W"])
