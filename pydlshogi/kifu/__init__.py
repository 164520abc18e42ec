"""Game records: lists of them, their formats, and the positions read from them."""
