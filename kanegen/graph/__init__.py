"""The hash-consed scalar expression graph: conversion from and to SymPy, derivatives, evaluation."""

from kanegen.graph.arrange import arranged as arranged
from kanegen.graph.balance import balanced as balanced
from kanegen.graph.derivatives import Tangent as Tangent
from kanegen.graph.derivatives import copied as copied
from kanegen.graph.derivatives import count_operations as count_operations
from kanegen.graph.derivatives import gradient as gradient
from kanegen.graph.derivatives import reachable as reachable
from kanegen.graph.derivatives import rebuild as rebuild
from kanegen.graph.derivatives import substitute as substitute
from kanegen.graph.display import to_sympy as to_sympy
from kanegen.graph.display import to_sympy_cse as to_sympy_cse
from kanegen.graph.functions import Function as Function
from kanegen.graph.functions import Spline as Spline
from kanegen.graph.identities import Identities as Identities
from kanegen.graph.interpret import PYTHON as PYTHON
from kanegen.graph.interpret import Context as Context
from kanegen.graph.interpret import evaluate as evaluate
from kanegen.graph.interpret import mpmath_context as mpmath_context
from kanegen.graph.interpret import numpy_context as numpy_context
from kanegen.graph.lower import Lowering as Lowering
from kanegen.graph.newton import Newton as Newton
from kanegen.graph.nodes import Graph as Graph
from kanegen.graph.nodes import Node as Node
