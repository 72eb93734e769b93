"""Snapshots: formats, writers, verifier and hydrator; values in, values out, no store."""
