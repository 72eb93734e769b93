"""The surfaces of the engine: decode, call one engine method, encode."""
