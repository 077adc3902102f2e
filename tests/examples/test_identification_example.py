"""The example of identification: its own checks."""

from __future__ import annotations

from systems import example


def test_the_double_pendulum_is_identified() -> None:
    module = example("identify_double_pendulum")
    values = [(what, value, bound) for what, value, bound in module.checks(*module.simulate())]
    assert len(values) == 8
    assert [what for what, value, bound in values if not abs(value) <= bound] == []
