"""A match: every engine plays a series of games against every opponent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pydlshogi.files import write_beside
from pydlshogi.match.engine_spec import EngineSpec
from pydlshogi.match.series import SETTINGS, Conditions, Series, SeriesError
from pydlshogi.match.table import Row, markdown, tsv
from pydlshogi.match.usi_client import UsiClient


@dataclass(frozen=True)
class Tournament:
    """The series of a match: each engine against each opponent.

    ``timeout``: seconds that an answer may take, in addition to the byoyomi.
    """

    engines: Sequence[EngineSpec]
    opponents: Sequence[EngineSpec]
    games: int
    conditions: Conditions
    output: Path
    timeout: float

    def series(self) -> list[Series]:
        """Lists all series.

        Raises:
            SeriesError: Two series would use the same folder.
        """
        found: dict[str, Series] = {}
        for engine in self.engines:
            for opponent in self.opponents:
                folder = self.output / f"{engine.name}_{opponent.name}"
                name = str(folder).casefold()  # Windows and macOS ignore case
                if name in found:
                    raise SeriesError(
                        f"the games of {engine.name} against {opponent.name} and those of "
                        f"{found[name].engine.name} against {found[name].opponent.name} would "
                        f"both go to {folder}. Give one of the engines another name."
                    )
                found[name] = Series(engine, opponent, self.conditions, folder)
        return list(found.values())

    def check(self) -> None:
        """Finds all faults of the settings before the first game; starts each engine once.

        Raises:
            UserError: A folder belongs to other games, there are not enough openings, or an engine
                cannot be started.
        """
        self.conditions.openings(self.games)
        needed: dict[EngineSpec, None] = {}
        for series in self.series():
            missing = series.missing(self.games)
            series.check_partners(missing)
            if missing:
                needed.update(dict.fromkeys((series.engine, series.opponent)))
        self._other_rows()
        for spec in needed:
            with UsiClient(spec, self.timeout) as client:
                client.new_game()

    def write_tables(self) -> str:
        """Writes ``table.md`` and ``table.tsv`` of all games in the folder; returns the former."""
        rows = self._other_rows() + [series.row() for series in self.series()]
        for name, text in (("table.md", markdown(rows)), ("table.tsv", tsv(rows))):
            with write_beside(self.output / name) as file:
                file.write(text.encode("utf-8"))
        return markdown(rows)

    def _other_rows(self) -> list[Row]:
        """Returns the results of other commands in the same folder."""
        known = {series.folder for series in self.series()}
        # Other programs too write files named settings.json; ours stand beside records.
        folders = sorted({path.parent for path in self.output.glob("*/[0-9]*.csa")} - known)
        rows = [Series.read(folder).row() for folder in folders if (folder / SETTINGS).exists()]
        return [row for row in rows if row.outcomes]
