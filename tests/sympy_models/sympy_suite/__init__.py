"""SymPy's own tests of mechanics, run with a comparison behind every KanesMethod they form equations with."""
