"""Integration methods: tableaux with their order conditions, rendered into C."""
