"""Contacts, their laws, and events."""
