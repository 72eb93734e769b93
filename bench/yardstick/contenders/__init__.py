"""One module for each contender; each imports its package, which lives in its environment only."""
