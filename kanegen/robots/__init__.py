"""Models of robots from files."""

from kanegen.robots.model import RobotModel as RobotModel
from kanegen.robots.model import from_urdf as from_urdf
from kanegen.robots.records import Joint as Joint
from kanegen.robots.records import Limits as Limits
from kanegen.robots.records import Mimic as Mimic
