"""Inputs of an integration."""
