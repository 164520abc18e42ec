"""Reads a batch of games to positions: files with records, or a part of a position file.

Plain CSA records are parsed together (:mod:`pydlshogi.kifu.csa_scan`), other records one by one
(:mod:`pydlshogi.kifu.csa`, :mod:`pydlshogi.kifu.kif`). Then all games
are played together (:mod:`pydlshogi.kifu.replay`). A record that cannot be parsed, or that has an
impossible move, is left out completely, with a note.

HCPE, PSV (:mod:`pydlshogi.kifu.fixed`) and HCPE3 files (:mod:`pydlshogi.kifu.hcpe3`) are read in
parts with whole records, so that large files need little memory.
"""

from __future__ import annotations

import hashlib
import io
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, NamedTuple

import numpy

from pydlshogi.kifu import hcpe3, stopping
from pydlshogi.kifu.csa_scan import scan
from pydlshogi.kifu.fixed import FixedFormat, LeftOut, decode_records, fixed_format, seen_by_mover
from pydlshogi.kifu.formats import CSA, Record, records_of
from pydlshogi.kifu.legality import illegal_moves, settle_foul
from pydlshogi.kifu.parsed_game import Game, RecordError
from pydlshogi.kifu.replay import Games, replay, rows_of
from pydlshogi.kifu.report import Note
from pydlshogi.positions import DRAW, LOSS, POSITION, UNKNOWN, WIN, Visits

# About the size of a part in bytes.
_PART_BYTES = 4 << 20
# Notes about the records of a part. A file of another format has millions of wrong records.
_MOST_NOTES = 1000

# A part with more wrong records than this share is of another format, unless it has few records.
_WRONG_FORMAT = 0.9
_FEW = 100


class File(NamedTuple):
    """A file to read.

    Attributes:
        name: Its name in notes. The suffix, or else the content, determines the format.
        size: Its size in bytes.
        path: Its path, used if ``data`` is None.
        data: Its content if it comes from an archive, else None.
    """

    name: str
    size: int
    path: str
    data: bytes | None = None


@dataclass
class Batch:
    """Result of reading a batch: its usable games in order, and notes about the others.

    Attributes:
        files: Number of files in the batch.
        unreadable: Number of files that exist but could not be read.
        positions: All positions, ``POSITION`` (n,).
        lengths: Number of positions of each game, (games,) int64.
        results: Result of each game for Black, (games,) uint8.
        turns: Side to move of each position, (n,) uint8.
        keys: Digest of start position and moves of each game.
        records: The record of each game.
        excluded: Notes about the files and records that cannot be used.
        contradictions: Notes about games whose summary contradicts the end mark.
        unlisted: Number of records that are left out without a note of their own.
        remarks: Number of notes in ``excluded`` that count as no record.
        visits: The visits of the positions; None if the format has none.
    """

    files: int
    unreadable: int = 0
    positions: numpy.ndarray = field(default_factory=lambda: numpy.empty(0, dtype=POSITION))
    lengths: numpy.ndarray = field(default_factory=lambda: numpy.empty(0, dtype=numpy.int64))
    results: numpy.ndarray = field(default_factory=lambda: numpy.empty(0, dtype=numpy.uint8))
    keys: list[bytes] = field(default_factory=list)
    records: list[Record] = field(default_factory=list)
    excluded: list[Note] = field(default_factory=list)
    contradictions: list[Note] = field(default_factory=list)
    turns: numpy.ndarray = field(default_factory=lambda: numpy.empty(0, dtype=numpy.uint8))
    unlisted: int = 0
    remarks: int = 0
    visits: Visits | None = None

    def visits_of_all(self) -> Visits:
        """Returns the visits of the positions, which may have no candidates."""
        return self.visits or Visits.none(len(self.positions))


def read_batch(files: list[File], strict: bool = False) -> Batch:
    """Reads the usable games of some files. No content of a file raises an exception.

    ``strict`` also leaves out games with a move that is possible but illegal.
    """
    batch = Batch(len(files))
    return read_records(list(_records(files, batch)), strict, batch)


def read_records(records: list[Record], strict: bool = False, batch: Batch | None = None) -> Batch:
    """Reads some records of a file, as :func:`read_batch` reads files.

    They are added to an empty batch, by default one of no file.
    """
    batch = batch or Batch(0)
    understood = _understand(records, batch.excluded) if records else None
    if understood is None:
        return batch
    games, records, summaries = understood
    positions, faults = replay(games)
    good = numpy.ones(len(records), dtype=bool)
    for fault in faults:
        good[fault.game] = False
        reason = f"move {fault.ply + 1} is not possible: {fault.reason}"
        batch.excluded.append(_note_of_move(records[fault.game], fault.ply, reason))
    if strict:
        for game, ply in illegal_moves(games, good):
            good[game] = False
            reason = f"move {ply + 1} is not legal"
            batch.excluded.append(_note_of_move(records[game], ply, reason))
    batch.contradictions.extend(
        records[game].note(0, reason)
        for game, reason in _contradictions(games.results, summaries)
        if good[game]
    )
    if not good.all():
        kept = numpy.flatnonzero(good)
        positions = positions[rows_of(games.lengths, kept)]
        games = games.select(kept)
        records = [records[game] for game in kept.tolist()]
    batch.positions, batch.records, batch.keys = positions, records, list(_keys(games))
    batch.lengths, batch.results = games.lengths, games.results
    ply = numpy.repeat(games.turns, games.lengths) + positions["ply"] - 1
    batch.turns = (ply & 1).astype(numpy.uint8)
    return batch


def _records(files: list[File], batch: Batch) -> Iterator[Record]:
    """Yields the records of all files."""
    for file in files:
        try:
            data = file.data if file.data is not None else _read_file(file.path, file.size)
        except OSError as error:
            batch.unreadable += 1
            batch.excluded.append(Note(file.name, 0, 0, f"it cannot be read ({error.strerror})"))
            continue
        yield from records_of(file.name, data)


def _read_file(path: str, size: int) -> bytes:
    """Reads a file that had ``size`` bytes when the list was read.

    ``open()`` needs three times as many system calls, which counts for thousands of small files.
    """
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0))
    try:
        data = os.read(descriptor, size + 1)
    finally:
        os.close(descriptor)
    return data if len(data) == size else Path(path).read_bytes()


def _understand(
    records: list[Record], excluded: list[Note]
) -> tuple[Games, list[Record], numpy.ndarray] | None:
    """Parses records, plain ones together: the games, their records and their summaries.

    A game without a summary has ``UNKNOWN``. None if there is no game.
    """
    # CSA text in a file named .kif must not be parsed as CSA.
    scanned = scan([record.text if record.format is CSA else b"" for record in records])
    numbers: list[int] = numpy.flatnonzero(scanned.plain).tolist()
    summaries = scanned.summaries.tolist()
    careful: list[Game] = []
    for number in numpy.flatnonzero(~scanned.plain).tolist():
        stopping.check()
        try:
            game = records[number].parse()
        except RecordError as error:
            excluded.append(records[number].note(error.line, error.reason))
            continue
        settle_foul(game)
        if not game.moves:
            excluded.append(records[number].note(0, "its only move is illegal"))
            continue
        careful.append(game)
        numbers.append(number)
        summaries.append(UNKNOWN if game.summary is None else game.summary)
    parts = [] if scanned.games is None else [scanned.games]
    if careful:
        parts.append(Games.of(careful))
    if not parts:
        return None
    games = parts[0]
    if careful:
        order = numpy.argsort(numbers)
        games = Games.join(parts).select(order)
        numbers = [numbers[place] for place in order]
        summaries = [summaries[place] for place in order]
    return games, [records[number] for number in numbers], numpy.array(summaries, numpy.uint8)


def _note_of_move(record: Record, ply: int, reason: str) -> Note:
    """Makes a note about a move. Only the parser for single records knows the line."""
    return record.note(record.parse().moves[ply].line, reason)


def _contradictions(results: numpy.ndarray, summaries: numpy.ndarray) -> Iterator[tuple[int, str]]:
    """Yields the games whose end mark contradicts the summary, and the reason."""
    words = {WIN: "Black won", LOSS: "White won", DRAW: "a draw"}
    known = (results != UNKNOWN) & (summaries != UNKNOWN)
    for game in numpy.flatnonzero(known & (results != summaries)).tolist():
        by_mark, by_summary = words[results[game]], words[summaries[game]]
        yield game, f"{by_mark} by the end mark, {by_summary} by the summary"


def _keys(games: Games) -> Iterator[bytes]:
    """Yields a digest of start position and moves of each game."""
    moves = numpy.stack([games.origin, games.target, games.piece], axis=1).tobytes()
    starts = games.starts.tobytes()
    size = games.starts.shape[1]
    end = 0
    for number, length in enumerate(games.lengths.tolist()):
        start, end = end, end + 3 * length
        digest = hashlib.blake2b(moves[start:end], digest_size=16)
        digest.update(starts[number * size : (number + 1) * size])
        yield digest.digest()


# --- position files -----------------------------------------------------------------


class Part(NamedTuple):
    """A part of a file.

    Attributes:
        file: Name of the file.
        offset: Where the part begins, in bytes.
        number: Number of its first record or game in the file, from 0.
        data: Its bytes.
        problem: Why the rest of the file cannot be read, a clause in words; empty if it can.
    """

    file: str
    offset: int
    number: int
    data: bytes
    problem: str = ""


def parts_of(file: File, size: int = _PART_BYTES) -> Iterator[Part]:
    """Reads a file in parts of about ``size`` bytes, at least one."""
    offset = number = 0
    try:
        with open(file.path, "rb") if file.data is None else io.BytesIO(file.data) as stream:
            for offset, number, data in _blocks(file.name, stream, size):
                yield Part(file.name, offset, number, data)
    except OSError as error:
        yield Part(file.name, offset, number, b"", f"it cannot be read ({error.strerror})")


def _blocks(name: str, stream: BinaryIO, size: int) -> Iterator[tuple[int, int, bytes]]:
    """Cuts a file into blocks: their offsets, the numbers of their first records, their bytes."""
    format_ = fixed_format(name)
    if format_ is None:
        yield from hcpe3.blocks(stream, size)
        return
    count = max(size // format_.record.itemsize, 1)
    number = 0
    data = stream.read(count * format_.record.itemsize)
    while data or not number:
        yield number * format_.record.itemsize, number, data
        number += count
        data = stream.read(count * format_.record.itemsize)


def read_part(part: Part, strict: bool = False) -> Batch:
    """Decodes a part. Records of HCPE and PSV count as games with one position.

    ``strict`` also leaves out records and games with an illegal move. No content raises an error.
    """
    batch = Batch(files=part.offset == 0)
    if part.problem:
        batch.unreadable = 1
        batch.excluded.append(Note(part.file, 0, 0, part.problem))
        return batch
    format_ = fixed_format(part.file)
    if format_ is None:
        _read_games(part, strict, batch)
    else:
        _read_fixed(part, format_, strict, batch)
    return batch


def _read_fixed(part: Part, format_: FixedFormat, strict: bool, batch: Batch) -> None:
    decoded = decode_records(part.data, format_, strict)
    count = len(part.data) // format_.record.itemsize
    if count >= _FEW and len(decoded.left_out) > _WRONG_FORMAT * count:
        # What is valid by chance would teach nonsense.
        reason = (
            f"only {len(decoded.positions)} of {count} records from byte {part.offset} on are "
            f"valid, so that they are not taken for {format_.name}; the first is wrong because "
            f"{decoded.left_out[0].reason}; give the file the suffix of its format"
        )
        batch.excluded.append(Note(part.file, 0, 0, reason))
        batch.unlisted = count - 1
        return
    batch.positions, batch.turns = decoded.positions, decoded.turns
    batch.lengths = numpy.ones(len(decoded.positions), numpy.int64)
    batch.results = seen_by_mover(decoded.positions["result"], decoded.turns)
    _note_left_out(part, decoded.left_out, batch)
    size = format_.record.itemsize
    behind = len(part.data) % size
    if behind or not part.data:
        what = f"it ends {behind} bytes after a whole record" if behind else "it is empty"
        remedy = "copy the file again, or give it the suffix of its format"
        reason = f"{what}; a {format_.name} file has a multiple of {size} bytes; {remedy}"
        _remark(part, reason, batch, counted=not (part.number or count))


def _read_games(part: Part, strict: bool, batch: Batch) -> None:
    decoded = hcpe3.decode_games(part.data, strict)
    batch.positions, batch.turns = decoded.positions, decoded.turns
    batch.lengths, batch.results = decoded.lengths, decoded.results
    batch.visits = decoded.visits
    _note_left_out(part, decoded.left_out, batch)
    if not part.data:
        _remark(part, "it is empty; copy the file again", batch, counted=True)
    if decoded.not_searched:
        _remark(part, f"{decoded.not_searched} moves without candidates are left out", batch)


def _note_left_out(part: Part, left_out: list[LeftOut], batch: Batch) -> None:
    """Adds notes about records that cannot be used, but not millions."""
    batch.excluded.extend(
        Note(
            part.file,
            part.number + record.number + 1,
            0,
            f"at byte {part.offset + record.start}: {record.reason}",
        )
        for record in left_out[:_MOST_NOTES]
    )
    batch.unlisted = max(len(left_out) - _MOST_NOTES, 0)
    if batch.unlisted:
        last = part.offset + left_out[-1].start
        reason = (
            f"{batch.unlisted} more records up to byte {last} cannot be used; "
            "check the file's format, and copy it again"
        )
        _remark(part, reason, batch)


def _remark(part: Part, reason: str, batch: Batch, *, counted: bool = False) -> None:
    """Adds a note about a part; ``counted``: it counts as a record, as a file without one does."""
    batch.excluded.append(Note(part.file, 0, 0, reason))
    batch.remarks += not counted
