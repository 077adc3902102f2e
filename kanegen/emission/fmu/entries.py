"""The functions of FMI 2.0 and 3.0 that an FMU exports: one list of what each of them calls.

Names, arguments and results are read from the standard's own headers, so that a function without an entry is an error.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from kanegen.errors import BuildError

_UNUSED: Final = {
    "2.0": ("Boolean", "String"),
    "3.0": ("Float32", "Int8", "UInt8", "Int16", "UInt16", "UInt32", "UInt64", "Boolean", "String", "Binary"),
}
"""Types that no variable has, by version."""

_CLOCKS: Final = (
    *("GetClock", "SetClock", "GetIntervalDecimal", "GetIntervalFraction", "GetShiftDecimal", "GetShiftFraction"),
    *("SetIntervalDecimal", "SetIntervalFraction", "SetShiftDecimal", "SetShiftFraction"),
)

_DEPENDENCIES: Final = 'fmu_no_feature({i}, "dependencies that change: those of modelDescription.xml are valid")'
_STRUCTURE: Final = 'fmu_no_feature({i}, "structural parameters")'
_PENDING: Final = 'fmu_fail({i}, "steps are not asynchronous: no status is pending")'

BY_HAND: Final = ""
"""A function that is written in ``fmu_fmi2.h`` or ``fmu_fmi3.h``."""

_COMMON: Final[Mapping[str, str]] = {
    "GetVersion": BY_HAND,
    "SetDebugLogging": "FMU_DONE",  # messages of errors only, which are always sent
    "FreeInstance": BY_HAND,
    "ExitInitializationMode": "fmu_initialize({i})",
    "Terminate": "fmu_terminate({i})",
    "Reset": "fmu_return_to_start({i})",
    "GetFMUState": "fmu_get_state({i}, {1})",
    "SetFMUState": "fmu_set_state({i}, {1})",
    "FreeFMUState": "fmu_free_state({1})",
    "SerializedFMUStateSize": "fmu_state_size({1}, {2})",
    "SerializeFMUState": "fmu_serialize({i}, {1}, {2}, {3})",
    "DeserializeFMUState": "fmu_deserialize({i}, {1}, {2}, {3})",
    "EnterEventMode": "fmu_enter({i}, FMU_EVENT)",
    "EnterContinuousTimeMode": "fmu_enter({i}, FMU_CONTINUOUS)",
    "CompletedIntegratorStep": "*{2} = 0; *{3} = 0; fmu_complete_step({i})",
    "SetTime": "fmu_set_time({i}, {1})",
    "SetContinuousStates": "fmu_set_states({i}, {1}, {2})",
    "GetContinuousStates": "fmu_get_states({i}, {1}, {2})",
    "GetEventIndicators": "fmu_get_indicators({i}, {1}, {2})",
    "GetNominalsOfContinuousStates": "fmu_get_nominals({1}, {2})",
    "DoStep": BY_HAND,
}

_FMI2: Final[Mapping[str, str]] = {
    "GetTypesPlatform": BY_HAND,
    "Instantiate": BY_HAND,
    "SetupExperiment": "fmu_setup({i}, {1}, {2}, {3}, {4}, {5})",
    "EnterInitializationMode": "fmu_begin_initialization({i})",
    "GetReal": "fmu_get_reals({i}, {1}, {2}, {3})",
    "SetReal": "fmu_set_reals({i}, {1}, {2}, {3})",
    "GetInteger": BY_HAND,
    "SetInteger": BY_HAND,
    "GetDirectionalDerivative": "fmu_slopes({i}, {1}, {2}, {3}, {4}, {5}, {6})",
    "NewDiscreteStates": BY_HAND,
    "GetDerivatives": "fmu_get_rates({i}, {1}, {2})",
    "SetRealInputDerivatives": '{2} == 0 ? FMU_DONE : fmu_fail({i}, "inputs are constant in a step: no derivatives")',
    "GetRealOutputDerivatives": '{2} == 0 ? FMU_DONE : fmu_no_feature({i}, "derivatives of outputs")',
    "CancelStep": 'fmu_fail({i}, "steps are not asynchronous and cannot be canceled")',
    "GetStatus": f"*{{2}} = fmi2OK; {_PENDING}",
    "GetRealStatus": "*{2} = {d}->t; "
    '{1} == fmi2LastSuccessfulTime ? FMU_DONE : fmu_no_feature({i}, "real status of this kind")',
    "GetIntegerStatus": '*{2} = 0; fmu_no_feature({i}, "integer status")',
    "GetBooleanStatus": "*{2} = {d}->phase == FMU_TERMINATED; "
    '{1} == fmi2Terminated ? FMU_DONE : fmu_no_feature({i}, "Boolean status of this kind")',
    "GetStringStatus": f'*{{2}} = ""; {_PENDING}',
}

_FMI3: Final[Mapping[str, str]] = {
    **dict.fromkeys(("InstantiateModelExchange", "InstantiateCoSimulation", "InstantiateScheduledExecution"), BY_HAND),
    "EnterInitializationMode": "fmu_setup_and_begin({i}, {1}, {2}, {3}, {4}, {5})",
    "GetFloat64": "fmu_get_reals({i}, {1}, {2}, {3})",
    "SetFloat64": "fmu_set_reals({i}, {1}, {2}, {3})",
    **dict.fromkeys(("GetInt32", "GetInt64", "SetInt64"), BY_HAND),
    "SetInt32": '{2} == 0 ? FMU_DONE : fmu_fail({i}, "counts of events cannot be set")',
    **dict.fromkeys(_CLOCKS, 'fmu_no_values({i}, {2}, "Clock")'),
    "GetDirectionalDerivative": "fmu_slopes({i}, {1}, {2}, {3}, {4}, {5}, {7})",
    "GetAdjointDerivative": 'fmu_no_feature({i}, "adjoint derivatives: use directional derivatives")',
    "GetNumberOfVariableDependencies": f"*{{2}} = 0; {_DEPENDENCIES}",
    "GetVariableDependencies": _DEPENDENCIES,
    "EnterConfigurationMode": _STRUCTURE,
    "ExitConfigurationMode": _STRUCTURE,
    "EvaluateDiscreteStates": "FMU_DONE",
    "UpdateDiscreteStates": BY_HAND,
    "GetContinuousStateDerivatives": "fmu_get_rates({i}, {1}, {2})",
    "GetNumberOfEventIndicators": "*{1} = (size_t)fmu_guards_count({d}->model); FMU_DONE",
    "GetNumberOfContinuousStates": "*{1} = (size_t){d}->n; FMU_DONE",
    "EnterStepMode": '{d}->phase == FMU_STEPPING ? FMU_DONE : fmu_no_feature({i}, "event mode in co-simulation")',
    "GetOutputDerivatives": '{2} == 0 ? FMU_DONE : fmu_no_feature({i}, "derivatives of outputs")',
    "ActivateModelPartition": 'fmu_no_feature({i}, "scheduled execution")',
}

CALLS: Final[Mapping[str, Mapping[str, str]]] = {"2.0": {**_COMMON, **_FMI2}, "3.0": {**_COMMON, **_FMI3}}
"""What each function returns, by version and name without prefix: a status in C, after statements.

``{1}``, ``{2}`` ...: the arguments after the instance, ``{i}``: the ``fmu_instance``, ``{d}``: its data."""

_TYPE = re.compile(r"typedef\s+[\w *]+?\bfmi[23](\w+)TYPE\s*\(([^;]*)\)\s*;")


class Entry(NamedTuple):
    """A function of the standard: its name, lines of arguments, unused arguments, statements and result."""

    name: str
    lines: tuple[str, ...]
    unused: tuple[str, ...]
    statements: tuple[str, ...]
    result: str


def entries(version: str, types: str) -> Iterator[Entry]:
    """The functions that call what they return, in the order of ``types``, the header with the standard's types.

    Raises `BuildError` for a function without an entry.
    """
    unused = {f"{verb}{kind}": kind for verb in ("Get", "Set") for kind in _UNUSED[version]}
    known = {**CALLS[version], **{name: f'fmu_no_values({{i}}, {{2}}, "{kind}")' for name, kind in unused.items()}}
    calls = {name.lower(): call for name, call in known.items()}  # GetFMUstate in 2.0, GetFMUState in 3.0
    for name, text in _TYPE.findall(types):
        if name.lower() not in calls:
            raise BuildError(f"kanegen.emission.fmu.entries has no entry for {name} of FMI {version}")
        if call := calls[name.lower()]:
            yield _entry(f"fmi{version[0]}{name}", [" ".join(argument.split()) for argument in text.split(",")], call)


def _entry(name: str, arguments: list[str], call: str) -> Entry:
    # One argument of FMI 2.0 has no name.
    arguments = [re.sub(r"^(\w+)\[\]$", r"\1 bytes[]", argument) for argument in arguments]
    names = [re.findall(r"\w+", argument)[-1] for argument in arguments]
    own: dict[str, Any] = {"i": f"fmu_of({names[0]})", "d": f"fmu_data_of({names[0]})"}
    *statements, result = call.format(*names, **own).split("; ")
    used = re.findall(r"\w+", "; ".join((*statements, result)))
    unused = tuple(name for name in names if name not in used)
    lines = ["", ""]
    for argument in arguments:
        if len(lines[-1]) + len(argument) > (90 - len(name) if len(lines) == 2 else 110):
            lines.append("")
        lines[-1] += f"{', ' if lines[-1] else ''}{argument}"
    return Entry(name, tuple(lines[1:]), unused, tuple(statements), result)
