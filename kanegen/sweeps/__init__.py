"""Sweeps: many motions or other evaluations of one model, with results in memory or in a Zarr store."""
