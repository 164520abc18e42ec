"""The processes of the engines that play on the board, and a limit of their number."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator
from typing import Callable

from pydlshogi.match.engine_spec import EngineSpec
from pydlshogi.match.usi_client import EngineError, UsiClient

#: Seconds that an engine may take to start and to load its model.
_START = 120.0
#: Seconds that an engine may take beyond its time for a move.
_DELAY = 20.0


class Pool:
    """The engines that run; at most ``most``. The one that was idle for longest makes room."""

    def __init__(self, most: int = 6, delay: float = _DELAY) -> None:
        self.delay = delay
        self._most = most
        self._lock = threading.Lock()
        self._seats: list[Seat] = []
        self._is_closed = False

    def admit(self, seat: Seat) -> None:
        """Makes room for an engine.

        Raises:
            EngineError: All engines are thinking, or the server is ending.
        """
        with self._lock:
            if self._is_closed:
                raise EngineError("The server is ending.")
            others = [other for other in self._seats if other.is_running() and other != seat]
            if len(others) >= self._most:
                idle = sorted(others, key=lambda other: other.last_use)
                if not any(other.close_if_idle() for other in idle):
                    raise EngineError(
                        f"{self._most} engines are thinking already. Pause or end a game."
                    )
            self._seats = [*others, seat]

    def close(self) -> None:
        """Ends all engines."""
        with self._lock:
            self._is_closed = True
            threads = [threading.Thread(target=seat.close) for seat in self._seats]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()


class Seat:
    """An engine that starts when it is first asked, and again after it has died.

    It is counted in the ``pool``.
    """

    def __init__(self, spec: EngineSpec, pool: Pool) -> None:
        self.spec = spec
        self.last_use = 0.0
        self._pool = pool
        self._lock = threading.Lock()
        self._client: UsiClient | None = None
        self._wanted: Callable[[], bool] = lambda: True

    def ask(self, position: str, go: str, seconds: float, wanted: Callable[[], bool]) -> str | None:
        """Asks for a move, as ``UsiClient.ask``; ends an earlier search of this engine.

        Returns the word after ``bestmove``; None if ``wanted``, which takes no lock, says that it
        is not wanted any more. After an EngineError, the next question starts a new engine.
        """
        with self._turn(wanted) as client:
            if client is None:
                return None
            # The engine may have missed a stop just before it began.
            words = client.ask(position, go, seconds, lambda info: self.stop_if_unwanted())
            return [*words, ""][0] if wanted() else None

    def prepare(self, wanted: Callable[[], bool]) -> None:
        """Starts the engine if it does not run; raises EngineError."""
        with self._turn(wanted):
            pass

    @contextlib.contextmanager
    def _turn(self, wanted: Callable[[], bool]) -> Iterator[UsiClient | None]:
        """Waits until an earlier search has ended; gives None if the turn is not wanted then."""
        while not self._lock.acquire(timeout=0.1):
            if not wanted():
                yield None
                return
            self.stop_if_unwanted()
        try:
            self._wanted = wanted
            client = self._ready() if wanted() else None
            yield client if wanted() else None
        except EngineError:
            self._discard()
            raise
        finally:
            self._wanted = lambda: True
            self.last_use = time.monotonic()
            self._lock.release()

    def _ready(self) -> UsiClient:
        """Returns the engine, which is started if it does not run."""
        if self._client is None:
            self._pool.admit(self)
            self._client = UsiClient(self.spec, _START, is_alone=True)
            self._client.greet()
            self._client.new_game()
            self._client.timeout = self._pool.delay
        return self._client

    def stop_if_unwanted(self) -> None:
        """Stops the search if its answer is not wanted any more."""
        client = self._client
        if client and self._lock.locked() and not self._wanted():
            client.stop()

    def is_running(self) -> bool:
        """Says whether the engine runs, or is just being started."""
        return self._client is not None or self._lock.locked()

    def close_if_idle(self, patience: float = 0.0) -> bool:
        """Ends the engine unless it thinks for ``patience`` seconds more; says whether it ended."""
        if not self._lock.acquire(timeout=patience):
            return False
        try:
            self._discard()
        finally:
            self._lock.release()
        return True

    def close(self) -> None:
        """Ends the engine, whatever it does."""
        client = self._client
        if client:
            client.stop()
        if not self.close_if_idle(1.0) and (client := self._client):
            client.kill()

    def _discard(self) -> None:
        client, self._client = self._client, None
        if client:
            with contextlib.suppress(OSError):
                client.close()
