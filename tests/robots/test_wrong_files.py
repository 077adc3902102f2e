"""Files and arguments that are wrong: each message says what was found, where, and what was expected."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import robot_files as rf
from messages import raises, says

import kanegen as kg

PAIR = rf.link("a"), rf.link("b", 1.0)


def write(folder: Path, text: str) -> Path:
    path = folder / "wrong.urdf"
    path.write_text(text, encoding="utf-8")
    return path


BROKEN: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("<robot>\n<link name='a'>\n</robot>", ("wrong.urdf", "line 3", "XML")),
    ("", ("wrong.urdf", "XML")),
    ("<sdf/>", ("<sdf>", "<robot>")),
    ("<robot/>", ("<link>",)),
    ('<robot xmlns:xacro="x"><xacro:include filename="x"/></robot>', ("<link>", "xacro")),
    (rf.robot(*PAIR, rf.link("a")), ("line 4", "second link", "'a'")),
    (rf.robot(*PAIR, "<link/>"), ("line 4", "no name")),
    (rf.robot(*PAIR, rf.joint("j", "ball", "a", "b")), ("'j'", "'ball'", "revolute", "floating")),
    (
        rf.robot(*PAIR, rf.joint("j", "revolute", "a", "b"), rf.joint("j", "revolute", "a", "b")),
        ("second joint", "'j'"),
    ),
    (rf.robot(*PAIR, rf.joint("j", "revolute", "a", "c")), ("'j'", "'c'", "no such link")),
    (rf.robot(*PAIR, '<joint name="j" type="fixed"><parent link="a"/></joint>'), ("'j'", "child")),
    (rf.robot(*PAIR, rf.joint("j", "revolute", "a", "b", rf.axis(0, 0, 0))), ("axis", "'j'", "zero")),
    (rf.robot(*PAIR, rf.joint("j", "revolute", "a", "b", '<axis xyz="1 0"/>')), ("axis", "'1 0'", "three numbers")),
    (rf.robot(*PAIR, rf.joint("j", "revolute", "a", "b", '<axis xyz="1 0 x"/>')), ("axis", "'x'", "finite")),
    (rf.robot(*PAIR, rf.joint("j", "revolute", "a", "b", '<dynamics damping="nan"/>')), ("damping", "'nan'")),
    (rf.robot(*PAIR, rf.joint("j", "revolute", "a", "b", '<dynamics damping="-1"/>')), ("damping", "-1", ">= 0")),
    (rf.robot(*PAIR, rf.joint("j", "revolute", "a", "b", '<mimic joint="k"/>')), ("'j'", "'k'", "no such joint")),
    (rf.robot(*PAIR, rf.joint("j", "revolute", "a", "b", '<mimic joint="j"/>')), ("'j'", "itself")),
    (rf.robot(*PAIR, rf.joint("j", "planar", "a", "b", '<mimic joint="j"/>')), ("'j'", "planar", "prismatic")),
    (rf.robot(*PAIR), ("2 links", "'a'", "'b'", "one root")),
    (rf.robot(*PAIR, *(rf.joint(x, "revolute", "a", "b") for x in "jk")), ("'b'", "'j'", "'k'", "tree")),
    (
        rf.robot(*PAIR, rf.joint("j", "revolute", "a", "b"), rf.joint("k", "revolute", "b", "a")),
        ("'a'", "'b'", "loop"),
    ),
    (rf.robot(*PAIR, rf.joint("j", "fixed", "a", "b")), ("no joint moves", "floating_base=True")),
    (
        rf.robot(*PAIR, rf.link("c"), rf.joint("j", "revolute", "a", "b"), rf.joint("k", "revolute", "b", "c")),
        ("'k'", "mass", "hold={'k': 0.0}"),
    ),
    (rf.robot("<link name='a'><inertial><mass value='-1'/></inertial></link>"), ("'a'", "-1 kg", "<inertia")),
    (rf.robot("<link name='a'><inertial/></link>"), ("'a'", "<mass")),
)


@pytest.mark.parametrize(("text", "words"), BROKEN)
def test_a_broken_file_is_refused_with_what_is_wrong(tmp_path: Path, text: str, words: tuple[str, ...]) -> None:
    with raises(kg.ModelError, "wrong.urdf", *words):
        kg.from_urdf(write(tmp_path, text))


def test_all_problems_of_a_file_are_reported_together(tmp_path: Path) -> None:
    text = rf.robot(*PAIR, rf.joint("j", "ball", "a", "b"), rf.joint("k", "revolute", "a", "b", rf.axis(0, 0, 0)))
    with pytest.raises(kg.ModelError) as caught:
        kg.from_urdf(write(tmp_path, text))
    assert len(caught.value.problems) == 2


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with raises(kg.FileError, "no_such.urdf"):
        kg.from_urdf(tmp_path / "no_such.urdf")


WRONG: tuple[tuple[dict[str, Any], tuple[str, ...]], ...] = (
    ({"gravity": (0, 0)}, ("gravity", "three numbers")),
    ({"gravity": 9.81}, ("gravity", "9.81")),
    ({"inertias": "ignore"}, ("inertias", "'ignore'", "'warn'", "'error'")),
    ({"floating_base": 1}, ("floating_base", "True or False")),
    ({"hold": ("elbow",)}, ("hold", "mapping")),
    ({"hold": {"wrist": 0.0}}, ("'wrist'", "shoulder", "elbow")),
)


@pytest.mark.parametrize(("options", "words"), WRONG)
def test_wrong_arguments_are_refused(tmp_path: Path, options: dict[str, Any], words: tuple[str, ...]) -> None:
    with raises(kg.ModelError, *words):
        kg.from_urdf(write(tmp_path, rf.TWO_LINKS), **options)


def test_limits_without_a_range_are_refused_if_they_count(tmp_path: Path) -> None:
    path = write(tmp_path, rf.TWO_LINKS.replace('upper="2.5"', 'upper="0.1"'))
    assert kg.from_urdf(path).joints["elbow"].limits.upper == 0.1
    with raises(kg.ModelError, "'elbow'", "0.2", "0.1", "lower < upper"):
        kg.from_urdf(path, limits=True)


def test_unknown_links_and_joints_are_refused(tmp_path: Path) -> None:
    model = kg.from_urdf(write(tmp_path, rf.TWO_LINKS))
    with raises(kg.ModelError, "'hand'", "upper", "lower"):
        model.link("hand")
    with raises(kg.ModelError, "'wrist'", "shoulder", "elbow"):
        model.motion("wrist")


def test_inertias_that_no_body_can_have_are_a_warning_or_an_error(tmp_path: Path) -> None:
    path = write(tmp_path, rf.TWO_LINKS.replace('ixx="0.05"', 'ixx="0.5"'))
    with pytest.warns(kg.ModelWarning) as caught:
        kg.from_urdf(path)
    assert len(caught) == 1
    says(caught[0].message, "wrong.urdf", "'upper'", "0.5", 'inertias="error"')
    with raises(kg.ModelError, "line 4", "'upper'", "0.5"):
        kg.from_urdf(path, inertias="error")


def test_what_is_left_out_is_said_in_one_warning(tmp_path: Path) -> None:
    text = rf.TWO_LINKS.replace("</robot>", '<loop_joint name="x"/></robot>').replace('damping="0.3"', 'friction="1"')
    with pytest.warns(kg.ModelWarning) as caught:
        kg.from_urdf(write(tmp_path, text))
    assert len(caught) == 1
    says(caught[0].message, "wrong.urdf", "friction", "shoulder", "friction=True", "<loop_joint>")


def test_files_that_a_robot_names_are_never_opened(tmp_path: Path) -> None:
    mesh = '<visual><geometry><mesh filename="package://nowhere/../../arm.dae"/></geometry></visual>'
    model = kg.from_urdf(write(tmp_path, rf.TWO_LINKS.replace('<link name="upper">', f'<link name="upper">{mesh}')))
    assert len(model.bodies) == 2
