"""Matches between USI engines: pairs of games from random openings, records, Elo.

The program is :mod:`pydlshogi.commands.match`. cshogi applies the rules; it shares no code
with our engine.
"""
