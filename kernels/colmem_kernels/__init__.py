"""Numba kernels of colmem."""
