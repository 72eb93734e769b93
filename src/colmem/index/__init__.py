"""Derived indexes over rows: lexical, vectors, metadata columns, keys, pieces."""
