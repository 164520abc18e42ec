"""The training positions and the test positions of a run, read from its two lists."""

from __future__ import annotations

import dataclasses
import logging
from typing import Any

import numpy

from pydlshogi.kifu.loading import Loaded, load_positions
from pydlshogi.kifu.mapped_positions import AnyPositions, MappedPositions, chunks, with_shards
from pydlshogi.kifu.report import Report
from pydlshogi.kifu.sources import Source, read_list
from pydlshogi.network.network import Network
from pydlshogi.outputs import real_path
from pydlshogi.positions import NO_EVALUATION, Visits, count_common
from pydlshogi.text import counted
from pydlshogi.training import log
from pydlshogi.training.order import make_order, random_of
from pydlshogi.training.parallel import Ranks
from pydlshogi.training.recipe import VISITS, Options, Recipe
from pydlshogi.training.targets import ValueTarget, has_successors

logger = logging.getLogger(__name__)

# Most positions in shards that are compared with the test set one by one; more are sampled.
_MOST_COUNTED = 1 << 21
_SAMPLE = 10_000


def read_sets(options: Options, ranks: Ranks) -> tuple[AnyPositions, AnyPositions]:
    """Reads both lists on the first rank; the others receive the positions.

    Returns:
        The training positions and the test positions.

    Raises:
        UserError: a list, a shard or all records cannot be used.
        FirstRankFailed: the first rank has raised an error.
    """
    loaded: list[Loaded] = []

    def read() -> list[tuple[tuple[str, ...], bool]]:
        loaded.extend(_read_positions(options))
        return [(item.shards, item.visits is not None) for item in loaded]

    sets = []
    for number, (shards, searched) in enumerate(ranks.on_first(read)):
        item = loaded[number] if ranks.is_first else None
        records = ranks.broadcast_array(None if item is None else item.records)
        visits = None
        if searched:
            mine = None if item is None else item.visits
            starts = ranks.broadcast_array(None if mine is None else mine.starts)
            candidates = ranks.broadcast_array(None if mine is None else mine.candidates)
            visits = Visits(starts, candidates)
        sets.append(with_shards(records, shards, visits))
    return sets[0], sets[1]


def _read_positions(options: Options) -> tuple[Loaded, Loaded]:
    """Reads both lists, and logs what they hold and what was left out."""
    logger.info(log.READ_START)
    paths = {"train": options.kifulist_train, "test": options.kifulist_test}
    # Both first: a wrong test list is reported before the training games are read.
    sources = {name: read_list(path) for name, path in paths.items()}
    if real_path(paths["train"]) == real_path(paths["test"]):
        logger.warning(
            "the training list is also the test list: the accuracy says nothing about new games"
        )
    loaded = {name: _load_list(name, path, sources[name], options) for name, path in paths.items()}
    logger.info(log.READ_END)
    sets = {name: item.mapped for name, item in loaded.items()}
    for name, positions in sets.items():
        logger.info("%s position num = %d", name, len(positions))
    for name, item in loaded.items():
        if item.shards:
            in_shards = len(sets[name]) - len(item.records)
            shards = counted(len(item.shards), "shard")
            logger.info("%s: %s in %s", name, counted(in_shards, "position"), shards)
            if options.strict or options.drop_duplicates:
                logger.warning(
                    "%s: strict and drop_duplicates have no effect on shards; "
                    "make the shards strict",
                    name,
                )
        for line in item.report.lines() if item.report.records else ():
            logger.info("%s: %s", name, line)
    train_set, test_set = loaded["train"], loaded["test"]
    if options.report:
        _merge(train_set.report, test_set.report).write_tsv(options.report)
    common = _count_common(sets["train"], sets["test"])
    logger.info("training positions that are also in the test set = %s", common)
    return train_set, test_set


def _count_common(train: AnyPositions, test: AnyPositions) -> str:
    """Counts the training positions that are also in the test set.

    Of many positions in shards, some are drawn: reading all would delay the start.
    """
    if isinstance(test, MappedPositions):
        if len(test) > _MOST_COUNTED:
            return f"not counted, because the test set has more than {_MOST_COUNTED} positions"
        test = test[:]
    if not isinstance(train, MappedPositions):
        return str(count_common(train, test))
    if len(train) <= _MOST_COUNTED:
        return str(sum(count_common(chunk, test) for chunk in chunks(train, _MOST_COUNTED // 4)))
    rows = make_order(len(train), random_of(0))[:_SAMPLE]
    train.prefetch(rows)
    drawn = train[rows]
    share = count_common(drawn, test) / len(drawn)
    return f"about {share * len(train):.0f} ({share:.2%} of a sample of {len(drawn)})"


def _load_list(name: str, path: str, sources: list[Source], options: Options) -> Loaded:
    """Loads the positions of a list, and logs whether its cache was read or written."""
    loaded = load_positions(
        path,
        strict=options.strict,
        drop_duplicates=options.drop_duplicates,
        visits=name == "train" and options.settings.recipe.policy_target == VISITS,
        sources=sources,
    )
    if loaded.from_cache:
        logger.info("load %s pickle", name)
    elif loaded.saved:
        logger.info("save %s pickle", name)
    return loaded


def _merge(train: Report, test: Report) -> Report:
    """Merges the reports of both lists; each reason then names its list."""
    merged: Any = {
        notes: [
            note._replace(reason=f"{note.reason} ({name} list)")
            for name, report in (("train", train), ("test", test))
            for note in getattr(report, notes)
        ]
        for notes in ("excluded", "duplicates", "contradictions")
    }
    return dataclasses.replace(train, **merged)


def warn_of_missing_targets(network: Network, recipe: Recipe, positions: AnyPositions) -> None:
    """Warns if no training position has the targets of the recipe: visits, evaluations, results."""
    if recipe.policy_target == VISITS and not getattr(positions, "has_visits", False):
        logger.warning("no training position has visits: the moves played are the target")
    value_target = ValueTarget.of_recipe(recipe)
    if network.value_kind is None:
        return
    if all(numpy.isnan(value_target(chunk)).all() for chunk in chunks(positions)):
        logger.warning("no training game has a known result: the value head learns nothing")
    if value_target.value_lambda < 1:
        _warn_of_missing_evaluations(positions)
    if value_target.td_lambda and not has_successors(positions):
        logger.warning(
            "no training position is followed by the next one of its game, as in position files: "
            "td_lambda mixes each evaluation with the result alone"
        )


def _warn_of_missing_evaluations(positions: AnyPositions) -> None:
    """Warns if no position has an evaluation, or none but 0.

    HCPE and PSV files cannot say that a position has no evaluation. Programs write 0 instead.
    """

    def have_only(*evaluations: int) -> bool:
        return all(numpy.isin(part["evaluation"], evaluations).all() for part in chunks(positions))

    if have_only(NO_EVALUATION):
        logger.warning("no training position has an evaluation: the results alone are the target")
    elif have_only(0, NO_EVALUATION):
        logger.warning(
            "every training position has the evaluation 0 or none, as files have that were "
            "converted from records without evaluations: the evaluation 0 moves the target of the "
            "value head towards 0.5; give value_lambda 1"
        )
