"""Pictures and pages of shogi boards. This room knows no network."""
