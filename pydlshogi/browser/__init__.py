"""The board in the browser: a small server, and the folder page with what it serves."""
