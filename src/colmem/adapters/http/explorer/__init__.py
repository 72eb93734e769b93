"""The web explorer: a page over the public HTTP API, served as it lies in ``page/``."""
