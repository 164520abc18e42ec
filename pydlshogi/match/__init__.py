"""Matches between USI engines: pairs of games from an opening, records, Elo.

The program is :mod:`pydlshogi.commands.match`. Where cshogi is installed, it applies the rules,
because it shares no code with :mod:`pydlshogi.rules`, by which our engines declare.
"""
