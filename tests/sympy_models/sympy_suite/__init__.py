"""SymPy's own tests of mechanics, each KanesMethod and LagrangesMethod in them compared with kanegen."""
