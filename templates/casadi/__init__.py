"""Templates of projects for CasADi."""
