"""Peers that are packages of their own: `kanegen bench --peers`."""
