"""The comparison with other packages, which ``make bench-peers`` runs; it is no part of the installed package."""
