"""Ranking, pure: fuses candidate lists, rescores the best, and orders everything else."""
