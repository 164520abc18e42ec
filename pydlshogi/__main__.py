"""``python -m pydlshogi NAME`` runs a program; without NAME it lists all (see launch.py)."""

from pydlshogi.launch import main

if __name__ == "__main__":
    main()
