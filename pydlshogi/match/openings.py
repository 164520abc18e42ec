"""Openings: the first moves of a pair of games, which start alike."""

from __future__ import annotations

import dataclasses
import functools
import random
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import shogi

from pydlshogi.analysis.record import checked_game
from pydlshogi.errors import UserError
from pydlshogi.kifu.formats import Record, is_binary, records_of
from pydlshogi.kifu.parsed_game import RecordError
from pydlshogi.kifu.sources import Member, Source, is_archive, read_archive, read_list
from pydlshogi.match.referee import Referee
from pydlshogi.rules import legal_moves
from pydlshogi.text import counted


class OpeningError(UserError):
    """There are not enough openings for a match."""


class Opening(NamedTuple):
    """The first moves of two games in USI notation, and where they come from."""

    moves: list[str]
    origin: str


@functools.lru_cache(maxsize=8)  # a match needs them for each series, and archives are slow
def draw_openings(number: int, plies: int, seed: int, kifu_list: str | None) -> tuple[Opening, ...]:
    """Draws the openings of a match: all different if they come from games, else random moves.

    An opening depends only on its place in the result, and on the other arguments. So a match
    can be resumed or extended, and all opponents play the same openings. KifuError: the list cannot
    be read; OpeningError: its games have fewer different openings.
    """
    if kifu_list is None:
        return tuple(
            Opening(random_opening(seed, pair, plies), f"{plies} random moves, seed {seed}")
            for pair in range(number)
        )
    found: dict[tuple[str, ...], str] = {}
    problems: list[str] = []
    records = shuffled_records(kifu_list, seed, problems)
    while len(found) < number:
        record = next(records, None)
        if record is None:
            raise OpeningError(
                f"the games of {kifu_list} have {counted(len(found), 'different opening')} of "
                f"{counted(plies, 'move')}, but the match needs {number}. Name more games, or "
                "ask for fewer games or plies. Handicap games and single positions have no opening."
                + unread(problems)
            )
        moves = first_moves(record, plies)
        if moves:
            found.setdefault(tuple(moves), f"{record.file}, game {record.number}")
    return tuple(
        Opening(list(moves), f"{plies} moves of {origin}") for moves, origin in found.items()
    )


def random_opening(seed: int, pair: int, plies: int) -> list[str]:
    """Draws the opening of random legal moves of a pair of games, numbered from 0."""
    # All Pythons and systems turn a string seed into the same random numbers.
    generator = random.Random(f"{seed} {pair}")
    while True:
        board = shogi.Board()
        moves: list[str] = []
        # Sorted, so that the order of the move list does not matter.
        while legal := sorted(move.usi() for move in legal_moves(board)):
            if len(moves) == plies:
                return moves
            moves.append(generator.choice(legal))
            board.push_usi(moves[-1])


def unread(problems: list[str]) -> str:
    """Returns a sentence about the files that cannot be read; empty if there are none."""
    if not problems:
        return ""
    return f" {counted(len(problems), 'file')} cannot be read; the first: {problems[0]}."


def shuffled_records(kifu_list: str, seed: int, problems: list[str]) -> Iterator[Record]:
    """Yields the records of a list: the files in random order, and the records within each.

    ``problems`` receives a clause for each file that cannot be read.
    """
    generator = random.Random(f"{seed} openings")
    sources = read_list(kifu_list)
    generator.shuffle(sources)
    for source in sources:
        records = list(_records(source, problems))
        generator.shuffle(records)
        yield from records


def _records(source: Source, problems: list[str]) -> Iterator[Record]:
    """Yields the records of a file; notes why a file cannot be read."""
    if source.problem:
        problems.append(f"{source.name}, {source.problem}")
        return
    try:
        if is_archive(source):
            members = list(read_archive(source))
        else:
            members = [Member(source.name, Path(source.path).read_bytes())]
    except (OSError, ValueError) as error:
        problems.append(f"{source.name}, {getattr(error, 'strerror', None) or error}")
        return
    for member in members:
        if member.problem:
            problems.append(f"{member.name}, {member.problem}")
        elif not is_binary(member.name):
            yield from records_of(member.name, member.data)


def first_moves(record: Record, plies: int) -> list[str]:
    """Returns the first moves of a game that goes on after them; empty for any other game."""
    try:
        parsed = record.parse()
        if len(parsed.moves) <= plies:
            return []
        # The later moves need no check, which would take far longer than the openings.
        first = dataclasses.replace(parsed, moves=parsed.moves[:plies], end_mark=None)
        game = checked_game(first)
    except RecordError:
        return []
    if game.start.sfen() != shogi.STARTING_SFEN:
        return []
    moves = [move.usi() for move in game.moves]
    referee = Referee(plies + 1)
    # A move that ends the game gives no opening.
    return [] if any(map(referee.hear, moves)) else moves
