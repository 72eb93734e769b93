"""Recall, pure: writes an answer out of hits, each statement with its citation."""
