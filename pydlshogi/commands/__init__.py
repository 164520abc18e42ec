"""The programs. Each module has the parser and the ``main`` of one program."""
