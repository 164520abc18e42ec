"""The programs transfer_policy_to_value and convert_model transfer."""

from pathlib import Path

import numpy
import pytest

from pydlshogi.commands import convert_model, transfer_policy_to_value
from pydlshogi.commands.convert_model import TARGETS
from pydlshogi.compat import chainer
from pydlshogi.model_files.model_file import MARK, load_network, save_model
from pydlshogi.network.registry import NETWORKS, UNFOLDABLE, make_network, name_of

KIFU = Path(__file__).resolve().parents[2] / "kifu"

TRUNK = [f"l{n}/{kind}" for n in range(1, 13) for kind in "Wb"]
POLICY_HEAD = ["l13/W", "l13_bias/b"]


def main(words):
    """The book's program, or the general one for other networks."""
    if "--network" in words:
        return convert_model.main(["transfer", *words])
    return transfer_policy_to_value.main(words)


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def make(name, **sizes):
    """A network whose biases are not the initial ones."""
    numpy.random.seed(5)
    network = make_network(name, **sizes)
    for path, parameter in sorted(network.namedparams()):
        if path.endswith("/b"):
            parameter.array[...] = numpy.random.normal(0, 0.3, parameter.shape)
    return network


def arrays(network):
    return chainer.serializers.npz.serialize(network)


PLANES = numpy.random.RandomState(2).randint(0, 2, (3, 104, 9, 9)).astype(numpy.float32)


def outputs(network, planes=PLANES):
    with chainer.using_config("train", False), chainer.no_backprop_mode():
        found = network(planes)
    return [v.array for v in (found if isinstance(found, tuple) else (found,))]


def test_the_value_network_gets_the_trunk_and_no_more_of_the_policy_model():
    policy = make("policy")
    save_model("model_policy", policy)
    assert main(["model_policy", "model_value", "--seed", "7"]) == 0
    value = load_network("model_value")
    assert name_of(value) == "value"
    for key in TRUNK:
        numpy.testing.assert_array_equal(arrays(value)[key], arrays(policy)[key])
    numpy.random.seed(7)
    fresh = arrays(make_network("value"))
    for key in set(fresh) - set(TRUNK):
        numpy.testing.assert_array_equal(arrays(value)[key], fresh[key])


def test_the_two_headed_network_plays_as_the_policy_model():
    policy = make("policy")
    save_model("model_policy", policy)
    assert main(["model_policy", "two", "--network", "policy_value"]) == 0
    two = load_network("two")
    for key in TRUNK + POLICY_HEAD:
        numpy.testing.assert_array_equal(arrays(two)[key], arrays(policy)[key])
    numpy.testing.assert_array_equal(outputs(two)[0], outputs(policy)[0])


@pytest.mark.parametrize("source", ["policy_bn", "policy_hand1x1", "policy_hand1x1_bn"])
def test_a_relative_is_folded_to_the_books_trunk_first(source):
    policy = make(source, channels=32)
    save_model("model_policy", policy)
    assert main(["model_policy", "two", "--network", "policy_value"]) == 0
    two = load_network("two")
    assert two.channels == 32
    numpy.testing.assert_allclose(outputs(two)[0], outputs(policy)[0], rtol=1e-3, atol=1e-4)


@pytest.mark.long
@pytest.mark.parametrize("target", ["policy_value", "value"])
def test_a_relative_that_is_folded_keeps_its_value_head(target):
    model = make("policy_value_hand1x1_bn")
    save_model("model_two", model)
    assert main(["model_two", "new", "--network", target]) == 0
    values = outputs(load_network("new"))[-1]
    numpy.testing.assert_allclose(values, outputs(model)[-1], rtol=1e-3, atol=1e-4)


def test_a_network_of_the_same_trunk_keeps_its_normalization():
    policy = make("policy_hand1x1_bn")
    policy.l3.bn.avg_mean[...] = 0.25
    save_model("model_policy", policy)
    assert main(["model_policy", "two", "--network", "policy_value_hand1x1_bn"]) == 0
    two = load_network("two")
    for key, array in arrays(policy).items():
        numpy.testing.assert_array_equal(arrays(two)[key], array)


def test_without_a_seed_two_runs_have_different_heads():
    save_model("model_policy", make_network("policy", channels=8))
    for output, options in (("a", []), ("b", []), ("c", ["--seed", "1"]), ("d", ["--seed", "1"])):
        assert main(["model_policy", output, *options]) == 0
    a, b, c, d = (arrays(load_network(name))["l15_v/W"] for name in "abcd")
    assert not numpy.array_equal(a, b)
    numpy.testing.assert_array_equal(c, d)


@pytest.mark.parametrize(
    "source, options, words",
    [
        (
            "policy_value_resnet",
            [],
            "model_policy: the hidden layers of a policy_value_resnet",
        ),
        ("policy", ["--network", "policy_value_hand1x1_bn"], "another network, or unfold it."),
        (
            "value",
            ["--network", "policy_value"],
            "model_policy: a value network has no policy head. Choose a model that has one.",
        ),
        (None, [], "model file model_policy does not exist"),
    ],
)
def test_what_does_not_fit_gets_one_sentence_and_no_file(folder, capsys, source, options, words):
    if source:
        save_model("model_policy", make_network(source, channels=8))
    assert main(["model_policy", "out", *options]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    name = "convert_model" if options else "transfer_policy_to_value"
    assert line.startswith(f"{name}: error: ")
    assert words in line
    assert not (folder / "out").exists()


def test_a_model_of_a_users_network_is_refused_without_an_impossible_advice(folder, capsys):
    content = {"a/W": numpy.zeros(3, "f"), MARK: numpy.array("mine:Mine")}
    with open("model", "wb") as file:
        chainer.serializers.save_npz(file, content)
    assert main(["model", "value"]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert "model file model is of a network that is not part of this package" in line
    assert "--network" not in line
    assert not (folder / "value").exists()


def test_the_policy_model_itself_is_not_replaced(folder, capsys):
    save_model("model_policy", make_network("policy", channels=8))
    before = (folder / "model_policy").read_bytes()
    assert main(["model_policy", "./model_policy"]) == 1
    assert "is the model file itself" in capsys.readouterr().err
    assert (folder / "model_policy").read_bytes() == before


@pytest.mark.parametrize("source", ["policy_hand1x1_bn", "policy_value_hand1x1_bn"])
def test_a_network_with_a_history_first_ignores_it(source):
    policy = make(source, channels=8)
    save_model("model_policy", policy)
    assert main(["model_policy", "new", "--network", "policy_value_history_bn"]) == 0
    new = load_network("new")
    assert name_of(new) == "policy_value_history_bn"
    assert not new.l1.recent.W.array.any()
    planes = numpy.random.RandomState(2).randint(0, 2, (3, 106, 9, 9)).astype(numpy.float32)
    found, expected = outputs(new, planes)[0], outputs(policy, planes[:, :104])[0]
    numpy.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def test_filters_of_the_last_two_moves_are_kept():
    save_model("model_policy", make("policy_value_history_bn", channels=8))
    assert main(["model_policy", "new", "--network", "policy_value_history_bn"]) == 0
    old, new = load_network("model_policy"), load_network("new")
    numpy.testing.assert_array_equal(new.l1.recent.W.array, old.l1.recent.W.array)


def test_every_choice_is_a_network_of_this_package():
    assert set(TARGETS) < set(NETWORKS)


@pytest.mark.long
@pytest.mark.parametrize("name", UNFOLDABLE)
def test_a_folded_model_gets_its_normalization_back(name):
    save_model("plain", make("policy_value", channels=8))
    lists = KIFU / "kifulist_test.txt"
    options = ["--network", name, "--unfold", str(lists), "--seed", "3"]
    assert main(["plain", "normalized", *options]) == 0
    plain, normalized = load_network("plain"), load_network("normalized")
    assert name_of(normalized) == name
    numpy.testing.assert_array_equal(normalized.l13.W.array, plain.l13.W.array)
    if normalized.value_kind is not None:
        numpy.testing.assert_array_equal(normalized.l15_v.W.array, plain.l15_v.W.array)
    before = arrays(normalized)
    assert main(["plain", "normalized", *options]) == 0
    for key, array in arrays(load_network("normalized")).items():
        numpy.testing.assert_array_equal(array, before[key])


def test_unfolding_without_a_normalized_network_is_refused(capsys):
    save_model("plain", make("policy_value", channels=8))
    with pytest.raises(SystemExit):
        main(["plain", "out", "--network", "policy_value", "--unfold", "list.txt"])
    assert "--unfold needs --network policy_hand1x1_bn, policy_" in capsys.readouterr().err


def test_a_model_that_cannot_be_unfolded_is_named_before_the_list_is_read(capsys):
    save_model("resnet", make("policy_value_resnet", channels=8))
    options = ["--network", "policy_hand1x1_bn", "--unfold", "no_such_list.txt"]
    assert main(["resnet", "out", *options]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert "model file resnet: a policy_value_resnet network cannot become" in line


@pytest.mark.parametrize(
    "output, message",
    [
        ("list.txt", "list.txt is the same file as --unfold"),
        ("list.txt/new", "cannot be made or written to"),
        (".", "is a folder"),
    ],
)
def test_an_output_that_cannot_be_written_is_named_before_the_list_is_read(
    folder, capsys, output, message
):
    save_model("plain", make("policy_value", channels=8))
    (folder / "list.txt").write_text("no_such_game.csa\n")
    options = ["--network", "policy_hand1x1_bn", "--unfold", "list.txt"]
    assert main(["plain", output, *options]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert message in line
    assert (folder / "list.txt").read_text() == "no_such_game.csa\n"


@pytest.mark.parametrize(
    "source, target, is_told",
    [
        ("policy_value_history_bn", "policy_value_hand1x1_bn", True),
        ("policy_value_history_bn", "policy_hand1x1_bn", True),
        ("policy_value_history_bn", "policy_value_history_bn", False),
        ("policy_value_hand1x1_bn", "policy_hand1x1_bn", False),
    ],
)
def test_filters_of_the_last_two_moves_are_not_left_out_silently(source, target, is_told, capsys):
    save_model("model_policy", make(source, channels=8))
    assert main(["model_policy", "new", "--network", target]) == 0
    sentences = capsys.readouterr().err.splitlines()
    assert ["left out" in sentence for sentence in sentences] == [True] * is_told
