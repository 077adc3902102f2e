"""Tires: forces as SymPy expressions, from property files or simple formulas, and wheels that roll on roads."""

from kanegen.tires.contact import Contact as Contact
from kanegen.tires.contact import Forces as Forces
from kanegen.tires.magic import MagicFormula as MagicFormula
from kanegen.tires.magic import from_tir as from_tir
from kanegen.tires.roads import Road as Road
from kanegen.tires.roads import road as road
from kanegen.tires.simple import brush as brush
from kanegen.tires.simple import fiala as fiala
from kanegen.tires.simple import linear as linear
from kanegen.tires.tire import Tire as Tire
from kanegen.tires.wheels import Wheel as Wheel
from kanegen.tires.wheels import wheel as wheel
