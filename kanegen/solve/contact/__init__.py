"""Contacts and impulses at one state."""
