"""The yardstick: one workload, its exact answers, and one module for each contender.

Only NumPy and the standard library are imported here, for each contender runs in an environment
that holds nothing else but itself.
"""
