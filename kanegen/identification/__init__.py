"""Identification: parameters, start values and inputs of a model from measured motions."""
