"""Reads game records: lists of files, record formats, packed positions and their cache."""
