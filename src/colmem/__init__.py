"""colmem: an embedded memory engine."""
