"""A board with a small model and a random engine, and what asks its server."""

import contextlib
import http.client
import json
import time

import pytest

from pydlshogi.browser.choices import Choices, read_models
from pydlshogi.browser.engines import Pool
from pydlshogi.browser.hall import Hall
from pydlshogi.browser.server import BoardServer
from pydlshogi.match.engine_spec import EngineSpec, parse_engine
from pydlshogi.model_files.model_file import save_model
from pydlshogi.network.policy import PolicyNetwork
from pydlshogi.network.policy_value_resnet import PolicyValueResnet

HUMANS = [{"kind": "human"}, {"kind": "human"}]
RANDOM = {"kind": "engine", "number": 0}

#: A USI engine in a few lines; {} is what it does at "go".
ENGINE = """
import os, sys, time
for line in sys.stdin:
    word = line.split()[0]
    if word == "usi":
        print("usiok", flush=True)
    if word == "isready":
        print("readyok", flush=True)
    if word == "quit":
        break
    if word == "go":
        {}
"""


class Client:
    """Asks a server as the page does."""

    def __init__(self, address):
        self.address = address
        self.host, _, rest = address.removeprefix("http://").partition("/")
        self.token = rest.rstrip("/")

    def send(self, method, path, body=None, headers=(), token=None):
        """Returns the status and the answer; JSON is decoded."""
        connection = http.client.HTTPConnection(self.host, timeout=60)
        given = {"Content-Type": "application/json"} if body is not None else {}
        try:
            path = f"/{self.token if token is None else token}/{path}"
            connection.request(method, path, body, {**given, **dict(headers)})
            answer = connection.getresponse()
            data = answer.read()
        finally:
            connection.close()
        is_json = answer.getheader("Content-Type") == "application/json"
        return answer.status, json.loads(data) if is_json else data.decode()

    def get(self, path):
        status, answer = self.send("GET", path)
        assert status == 200, answer
        return answer

    def post(self, path, **wish):
        status, answer = self.send("POST", path, json.dumps(wish))
        assert status == 200, answer
        return answer

    def refused(self, path, **wish):
        """Returns the one sentence of a refusal."""
        status, answer = self.send("POST", path, json.dumps(wish))
        assert status == 400
        assert answer["error"].endswith(".") and "\n" not in answer["error"]
        return answer["error"]

    def new(self, players=HUMANS, **wish):
        """Starts a game; returns its name."""
        return self.post("new", players=players, **wish)["name"]

    def state(self, name):
        """Reads the first event of a game's stream."""
        return self._event(name, "state")

    def shown(self, name):
        """Reads what a game's stream shows beside the game."""
        return self._event(name, "shown")

    @contextlib.contextmanager
    def watching(self, name):
        """Keeps the stream of a game open, as a tab does; gives its answer."""
        connection = http.client.HTTPConnection(self.host, timeout=60)
        try:
            connection.request("GET", f"/{self.token}/game/{name}/events")
            with connection.getresponse() as answer:
                yield answer
        finally:
            connection.close()

    def _event(self, name, kind):
        with self.watching(name) as answer:
            lines = iter(answer.readline, b"")
            next(line for line in lines if line == f"event: {kind}\n".encode())
            data = next(lines)
        return json.loads(data[len("data: ") :])

    def until(self, name, condition, seconds=60):
        """Waits until the state of a game fulfils a condition; returns the state."""
        end = time.monotonic() + seconds
        while not condition(state := self.state(name)):
            assert time.monotonic() < end, state
            time.sleep(0.1)
        return state

    def until_shown(self, name, condition, seconds=60):
        """Waits until what is shown beside a game fulfils a condition; returns it."""
        end = time.monotonic() + seconds
        while not condition(shown := self.shown(name)):
            assert time.monotonic() < end, shown
            time.sleep(0.1)
        return shown


@pytest.fixture(scope="session")
def models(tmp_path_factory):
    """A model with a value and one without."""
    folder = tmp_path_factory.mktemp("models")
    save_model(folder / "model_small", PolicyValueResnet(blocks=2, channels=8))
    save_model(folder / "model_policy", PolicyNetwork(channels=8))
    return read_models([folder / "model_small", folder / "model_policy"])


def engine(name, python, tmp_path):
    """Makes an engine that does something in Python at "go"."""
    path = tmp_path / f"{name}.py"
    path.write_text(ENGINE.format(python))
    return EngineSpec(name, ("{python}", str(path)))


@pytest.fixture
def engines(tmp_path):
    """Engines: a random one, one that dies at its first move only, one that hangs."""
    once = (
        f"if not os.path.exists({str(tmp_path / 'died')!r}):\n"
        f"            open({str(tmp_path / 'died')!r}, 'w').close(); sys.exit(3)\n"
        "        print('bestmove 3c3d', flush=True)"
    )
    return [
        parse_engine("random"),
        engine("dies", once, tmp_path),
        engine("hangs", "time.sleep(1000)", tmp_path),
        engine("cheats", "print('bestmove 5a5i', flush=True)", tmp_path),
    ]


@contextlib.contextmanager
def running(models, engines, folder, pool):
    """Runs a server in a thread."""
    server = BoardServer(Hall(Choices(models, engines), folder / "games", pool))
    server.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()


@contextlib.contextmanager
def serving(models, engines, folder, pool):
    """Runs a server and gives a client."""
    with running(models, engines, folder, pool) as server:
        yield Client(server.address)


@pytest.fixture
def server(models, engines, tmp_path):
    with running(models, engines, tmp_path, Pool(delay=1.0)) as server:
        yield server


@pytest.fixture
def client(server):
    return Client(server.address)
