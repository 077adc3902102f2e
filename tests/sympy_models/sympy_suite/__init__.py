"""SymPy's own tests of mechanics, run with a comparison behind every KanesMethod and LagrangesMethod they form equations with."""
