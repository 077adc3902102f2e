"""Passes from a program to lowered code."""
