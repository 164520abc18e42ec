"""Plays games between two engines: one game, or many in threads that have their own engines."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Sequence
from typing import Callable

import shogi

from pydlshogi.match.engine_spec import EngineSpec, Limit
from pydlshogi.match.record import PlayedGame
from pydlshogi.match.referee import Referee
from pydlshogi.match.usi_client import EngineError, UsiClient

#: Seconds between two looks at the threads.
_PAUSE = 0.05


def play_game(
    players: tuple[UsiClient, UsiClient], opening: list[str], limit: Limit, max_plies: int
) -> PlayedGame:
    """Plays a game of the engines of Black and White, from the first moves of an opening.

    An engine that dies or does not answer when it is to move loses; its process is then
    ended. A game of ``max_plies`` moves is drawn.
    """
    referee = Referee(max_plies)
    seconds = [0.0] * len(opening)
    evaluations: list[int | None] = [None] * len(opening)
    verdict = None
    for move in opening:
        verdict = referee.hear(move)
    while verdict is None:
        start = time.monotonic()
        mover = referee.board.turn
        evaluation = None
        try:
            move, evaluation = players[mover].best_move(referee.moves, limit)
        except EngineError as error:
            # CSA has no mark for a dead engine.
            verdict = referee.loss("%TIME_UP", str(error))
        else:
            verdict = referee.hear(move)
        seconds.append(time.monotonic() - start)
        if evaluation is not None and mover == shogi.WHITE:
            evaluation = -evaluation
        evaluations.append(evaluation)
    for colour, player in enumerate(players):
        player.game_over(_result(verdict.winner, colour))
    return PlayedGame(referee.csa_moves, seconds, evaluations, verdict)


def _result(winner: int | None, colour: int) -> str:
    """Returns the USI word for the result of one side."""
    if winner is None:
        return "draw"
    return "win" if winner == colour else "lose"


class Workers:
    """Plays games in several threads.

    ``play`` plays the game of a number with the clients of both engines, and ``finished`` receives
    number and game from one thread at a time.
    """

    def __init__(
        self,
        specs: tuple[EngineSpec, EngineSpec],
        timeout: float,
        play: Callable[[int, UsiClient, UsiClient], PlayedGame],
        finished: Callable[[int, PlayedGame], None],
    ) -> None:
        self._specs = specs
        self._timeout = timeout
        self._play = play
        self._finished = finished
        self._lock = threading.Lock()
        self._stop, self._give_up = threading.Event(), threading.Event()
        self._engines: list[_Engine] = []
        self._errors: list[BaseException] = []

    def run(
        self, numbers: Sequence[int], concurrency: int, interrupted: Callable[[], None]
    ) -> None:
        """Plays the games of some numbers, ``concurrency`` at a time.

        ``interrupted`` is called at the first Ctrl-C, before the current games end.

        Raises:
            KeyboardInterrupt: After Ctrl-C, when the current games have ended; after a
                second one, when the engines were killed and the games dropped.
            EngineError: An engine cannot be started or is not ready for a game.
            OSError: ``finished`` cannot write a game.
        """
        self._numbers = iter(numbers)
        count = min(concurrency, len(numbers))
        threads = [threading.Thread(target=self._work_and_note_the_end) for _ in range(count)]
        # Polled: Ctrl-C in the lock of a future or a condition could leave it locked for ever.
        try:
            for thread in threads:
                thread.start()
            self._wait(threads)
        except KeyboardInterrupt:
            self._stop.set()
            self._finish_or_kill(threads, interrupted)
            raise
        if self._errors:
            raise self._errors[0]

    def _wait(self, threads: Sequence[threading.Thread]) -> None:
        """Waits for all threads; the first error stops the others after their game."""
        while _are_alive(threads):
            if self._errors:
                self._stop.set()
            time.sleep(_PAUSE)

    def _finish_or_kill(
        self, threads: Sequence[threading.Thread], interrupted: Callable[[], None]
    ) -> None:
        """Waits for the current games, or kills the engines at a second Ctrl-C."""
        try:
            with contextlib.suppress(OSError):  # the terminal may be closed
                interrupted()
            self._wait(threads)
        except KeyboardInterrupt:
            self._give_up.set()
            # Repeated, since an engine may be starting. Further Ctrl-C is ignored.
            while _are_alive(threads):
                with contextlib.suppress(KeyboardInterrupt):
                    for engine in list(self._engines):
                        engine.kill()
                    time.sleep(_PAUSE)

    def _work_and_note_the_end(self) -> None:
        """Runs in a thread; notes the error that ends it."""
        try:
            self._work()
        except BaseException as error:
            self._errors.append(error)

    def _work(self) -> None:
        """Plays games until there are no more."""
        with contextlib.ExitStack() as stack:
            engines = [stack.enter_context(_Engine(spec, self._timeout)) for spec in self._specs]
            self._engines.extend(engines)
            while not self._stop.is_set():
                with self._lock:
                    number = next(self._numbers, None)
                if number is None:
                    return
                first, second = (engine.prepare() for engine in engines)
                game = self._play(number, first, second)
                if self._give_up.is_set():
                    return  # an engine lost because it was killed
                with self._lock:
                    self._finished(number, game)


def _are_alive(threads: Sequence[threading.Thread]) -> bool:
    return any(thread.is_alive() for thread in threads)


class _Engine:
    """An engine that is started when it is first needed, and again after it has died."""

    def __init__(self, spec: EngineSpec, timeout: float) -> None:
        self._spec = spec
        self._timeout = timeout
        self._client: UsiClient | None = None

    def prepare(self) -> UsiClient:
        """Returns the engine, ready for a new game; EngineError: it cannot be."""
        if self._client:
            with contextlib.suppress(EngineError):  # it may have died after the last game
                if self._client.is_alive():  # otherwise, a child process may still answer
                    self._client.new_game()
                    return self._client
            self._client.close()
            self._client = None
        self._client = UsiClient(self._spec, self._timeout)
        self._client.greet()
        self._client.new_game()
        return self._client

    def kill(self) -> None:
        """Kills the engine; other threads may call it."""
        client = self._client
        if client:
            client.kill()

    def __enter__(self) -> _Engine:
        return self

    def __exit__(self, *exception: object) -> None:
        if self._client:
            self._client.close()
