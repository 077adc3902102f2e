"""The XML files of an FMU: modelDescription.xml of FMI 2.0 and 3.0, and buildDescription.xml."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final
from xml.etree import ElementTree
from xml.etree.ElementTree import Element, SubElement

from kanegen._version import __version__
from kanegen.codes import Mode
from kanegen.emission.example import Stabilized
from kanegen.emission.fmu.dependencies import Dependencies
from kanegen.emission.fmu.options import FmuOptions
from kanegen.emission.fmu.variables import FmuVariable, Table
from kanegen.errors import BuildError
from kanegen.units import Unit

_NOT_XML: Final = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")

_RADIANS: Final = re.compile(r"(?<![A-Za-z])rad(?:\^(\d+))?(?![A-Za-z])")

FLAGS: Final = {
    "2.0": {
        "canNotUseMemoryManagementFunctions": "true",
        "canGetAndSetFMUstate": "true",
        "canSerializeFMUstate": "true",
        "providesDirectionalDerivative": "true",
    },
    "3.0": {
        "canGetAndSetFMUState": "true",
        "canSerializeFMUState": "true",
        "providesDirectionalDerivatives": "true",
    },
}
"""Capabilities of both kinds of simulation, by version."""

LOG_CATEGORIES: Final = {
    "logStatusError": "errors and their reasons",
    "logStatusDiscard": "states beyond the ends of a table: the importer is to shorten its step",
}
"""The categories of messages."""


@dataclass(frozen=True)
class Fmu:
    """What the files of an FMU say about it.

    ``identifier`` is the name of the binary and the prefix of functions, ``files`` are the C files to compile,
    ``start_time`` is in s, ``n_indicators`` counts event indicators, ``token`` identifies the FMU. An FMU that projects
    its state (``stabilized``) is for co-simulation only.
    """

    name: str
    identifier: str
    token: str
    table: Table
    dependencies: Dependencies
    options: FmuOptions
    methods: tuple[str, ...]
    start_time: float
    n_indicators: int
    files: tuple[str, ...]
    stabilized: Stabilized

    @property
    def exchanges(self) -> bool:
        """Whether the FMU is for model exchange too."""
        return self.stabilized.every == 0


def model_description(fmu: Fmu) -> bytes:
    """The text of modelDescription.xml. Raises `BuildError` for names that XML cannot contain."""
    for text in (fmu.name, *(variable.name for variable in fmu.table.variables)):
        if _NOT_XML.search(text):
            raise BuildError(f"the name {text!r} contains a character that XML cannot contain; choose another name")
    root = _root(fmu)
    _interfaces(root, fmu)
    _units(root, fmu.table.variables)
    _types(root, fmu)
    categories = SubElement(root, "LogCategories")
    for name, meaning in LOG_CATEGORIES.items():
        described = {} if fmu.options.fmi == "2.0" else {"description": meaning}
        SubElement(categories, "Category", {"name": name, **described})
    SubElement(
        root,
        "DefaultExperiment",
        startTime=repr(fmu.start_time),
        tolerance=repr(fmu.options.stepping["rtol"]),
        stepSize=repr(fmu.options.stepping["step"]),
    )
    variables = SubElement(root, "ModelVariables")
    for place, variable in enumerate(fmu.table.variables):
        (_variable_2 if fmu.options.fmi == "2.0" else _variable_3)(variables, place, variable)
    (_structure_2 if fmu.options.fmi == "2.0" else _structure_3)(root, fmu)
    return _text(root)


def _text(root: Element) -> bytes:
    ElementTree.indent(root)
    text: bytes = ElementTree.tostring(root, encoding="UTF-8", xml_declaration=True)
    return text + b"\n"


def _root(fmu: Fmu) -> Element:
    version = fmu.options.fmi
    root = Element("fmiModelDescription", fmiVersion=version, modelName=fmu.name)
    root.set("guid" if version == "2.0" else "instantiationToken", fmu.token)
    root.set("generationTool", f"kanegen {__version__}")
    root.set("variableNamingConvention", "flat")
    if version == "2.0":
        root.set("numberOfEventIndicators", str(fmu.n_indicators))
    return root


def _interfaces(root: Element, fmu: Fmu) -> None:
    version, flags = fmu.options.fmi, FLAGS[fmu.options.fmi]
    interfaces = []
    if fmu.exchanges:
        exchange = SubElement(root, "ModelExchange", {"modelIdentifier": fmu.identifier, **flags})
        exchange.set(
            "completedIntegratorStepNotNeeded" if version == "2.0" else "needsCompletedIntegratorStep",
            "true" if bool(fmu.n_indicators) is (version == "3.0") else "false",
        )
        interfaces.append(exchange)
    simulation = SubElement(root, "CoSimulation", {"modelIdentifier": fmu.identifier, **flags})
    simulation.set("canHandleVariableCommunicationStepSize", "true")
    if version == "2.0":
        for interface in (*interfaces, simulation):
            files = SubElement(interface, "SourceFiles")
            for name in fmu.files:
                SubElement(files, "File", name=name)
    else:
        simulation.set("hasEventMode", "false")


def _units(root: Element, variables: Iterable[FmuVariable]) -> None:
    """The units of the variables, in the order of first use; display units of the same SI unit are together."""
    used: dict[str, list[Unit]] = {}
    for variable in variables:
        if variable.unit is not None:
            used.setdefault(variable.unit.si, []).append(variable.unit)
    definitions = SubElement(root, "UnitDefinitions")
    for name, units in used.items():
        element = SubElement(definitions, "Unit", name=name)
        powers = dict(units[0].exponents)
        if all(power.denominator == 1 for power in powers.values()):
            base = SubElement(element, "BaseUnit", {key: str(power) for key, power in powers.items()})
            if radians := _radians(name):
                base.set("rad", str(radians))
        for text, size in dict.fromkeys((u.text, u.size) for u in units if not u.is_coherent):
            SubElement(element, "DisplayUnit", name=text, factor=repr(1.0 / size))


def _radians(unit: str) -> int:
    """The exponent of rad in a coherent unit, which SI does not count among the base units."""
    numerator, _, denominator = unit.partition("/")
    parts = ((numerator, 1), (denominator, -1))
    return sum(sign * int(power or 1) for text, sign in parts for power in _RADIANS.findall(text))


def _enumerations(fmu: Fmu) -> dict[str, Sequence[str]]:
    return {Mode.__name__: Mode.labels(), "Method": fmu.methods}


def _types(root: Element, fmu: Fmu) -> None:
    """Enumerations; their numbers begin with 1 in FMI 2.0, and here in FMI 3.0 as well."""
    definitions = SubElement(root, "TypeDefinitions")
    for name, labels in _enumerations(fmu).items():
        if fmu.options.fmi == "2.0":
            element = SubElement(SubElement(definitions, "SimpleType", name=name), "Enumeration")
        else:
            element = SubElement(definitions, "EnumerationType", name=name)
        for k, label in enumerate(labels):
            SubElement(element, "Item", name=label, value=str(k + 1))


def _initial(variable: FmuVariable) -> str | None:
    if variable.causality in ("input", "independent"):
        return None
    return "calculated" if variable.is_calculated else "exact"


def _variable_2(parent: Element, place: int, variable: FmuVariable) -> None:
    element = SubElement(
        parent,
        "ScalarVariable",
        name=variable.name,
        valueReference=str(place),
        description=variable.description,
        causality=variable.causality,
        variability=variable.variability,
    )
    if (initial := _initial(variable)) is not None:
        element.set("initial", initial)
    kind = {"real": "Real", "integer": "Integer"}.get(variable.type, "Enumeration")
    value = SubElement(element, kind)
    if kind == "Enumeration":
        value.set("declaredType", variable.type)
    _value(value, variable)
    if variable.state is not None:
        value.set("derivative", str(variable.state + 1))  # counted from 1


def _variable_3(parent: Element, place: int, variable: FmuVariable) -> None:
    kind = {"real": "Float64", "integer": "Int32"}.get(variable.type, "Enumeration")
    element = SubElement(
        parent,
        kind,
        name=variable.name,
        valueReference=str(place),
        description=variable.description,
        causality=variable.causality,
        variability=variable.variability,
    )
    if (initial := _initial(variable)) is not None:
        element.set("initial", initial)
    if kind == "Enumeration":
        element.set("declaredType", variable.type)
    _value(element, variable)
    if variable.state is not None:
        element.set("derivative", str(variable.state))


def _value(element: Element, variable: FmuVariable) -> None:
    if variable.value is not None:
        element.set("start", repr(variable.value))
    if variable.unit is not None:
        element.set("unit", variable.unit.si)
        if not variable.unit.is_coherent:
            element.set("displayUnit", variable.unit.text)


def _unknowns(fmu: Fmu) -> tuple[list[int], list[int], list[int]]:
    """Places of the outputs, of the derivatives, and of what the FMU computes at the start."""
    outputs, rates = fmu.table.outputs(), fmu.table.places("RATE")
    calculated = [k for k in outputs if fmu.table.variables[k].is_calculated]
    return outputs, rates, sorted(calculated + rates)


def _structure_2(root: Element, fmu: Fmu) -> None:
    structure = SubElement(root, "ModelStructure")
    outputs, rates, initial = _unknowns(fmu)
    for title, places in (("Outputs", outputs), ("Derivatives", rates), ("InitialUnknowns", initial)):
        if places:
            part = SubElement(structure, title)
            for place in places:
                unknown = SubElement(part, "Unknown", index=str(place + 1))
                if title != "InitialUnknowns":
                    unknown.set("dependencies", " ".join(str(k + 1) for k in fmu.dependencies.of(place)))


def _structure_3(root: Element, fmu: Fmu) -> None:
    structure = SubElement(root, "ModelStructure")
    outputs, rates, initial = _unknowns(fmu)
    indicators = fmu.table.places("GUARD")
    parts = {
        "Output": outputs,
        "ContinuousStateDerivative": rates,
        "InitialUnknown": initial,
        "EventIndicator": indicators,
    }
    for title, places in parts.items():
        for place in places:
            unknown = SubElement(structure, title, valueReference=str(place))
            if title in ("Output", "ContinuousStateDerivative"):
                unknown.set("dependencies", " ".join(map(str, fmu.dependencies.of(place))))


def build_description(fmu: Fmu) -> bytes:
    """The text of buildDescription.xml, which says how the sources of an FMU 3.0 are compiled."""
    root = Element("fmiBuildDescription", fmiVersion="3.0")
    configuration = SubElement(root, "BuildConfiguration", modelIdentifier=fmu.identifier)
    sources = SubElement(configuration, "SourceFileSet", language="C99")
    for name in fmu.files:
        SubElement(sources, "SourceFile", name=name)
    definition = SubElement(sources, "PreprocessorDefinition", name="FMI3_OVERRIDE_FUNCTION_PREFIX")
    definition.set("description", "for a shared library, whose functions have no prefix")
    SubElement(configuration, "Library", name="m", description="mathematical functions of C")
    return _text(root)
