"""Matches between USI engines: pairs of games from an opening, records, Elo.

The program is :mod:`pydlshogi.commands.match`. cshogi applies the rules; it shares no code
with our engine.
"""
