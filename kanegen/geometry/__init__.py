"""Surfaces of bodies, and their contacts as unilateral constraints."""

from kanegen.geometry.contacts import contact as contact
from kanegen.geometry.contacts import contacts as contacts
from kanegen.geometry.contacts import foot as foot
from kanegen.geometry.contacts import nearest as nearest
from kanegen.geometry.fields import Foot as Foot
from kanegen.geometry.fields import periodic as periodic
from kanegen.geometry.nearest import Nearest as Nearest
from kanegen.geometry.surfaces import Surface as Surface
from kanegen.geometry.surfaces import box as box
from kanegen.geometry.surfaces import cam as cam
from kanegen.geometry.surfaces import capsule as capsule
from kanegen.geometry.surfaces import cone as cone
from kanegen.geometry.surfaces import cylinder as cylinder
from kanegen.geometry.surfaces import disk as disk
from kanegen.geometry.surfaces import ellipsoid as ellipsoid
from kanegen.geometry.surfaces import height_field as height_field
from kanegen.geometry.surfaces import implicit as implicit
from kanegen.geometry.surfaces import plane as plane
from kanegen.geometry.surfaces import point as point
from kanegen.geometry.surfaces import sphere as sphere
from kanegen.geometry.surfaces import torus as torus
