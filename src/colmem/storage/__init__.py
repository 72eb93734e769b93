"""Durable parts of a store: table, row log, lock, resident columns."""
