"""Integration, with and without contacts and events."""
