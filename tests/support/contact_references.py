"""Reference numbers that take seconds to compute, with their generator."""

# The first switches of ``obstructed_pendulum`` from its start: mode entered, time in s. From ``python
# tests/support/oracle_obstructed.py``: Taylor series in 30 digits; the first three are computed again in the tests.
OBSTRUCTED_SWITCHES: tuple[tuple[str, str], ...] = (
    ("closed", "0.46283562530691776636"),
    ("penetrated", "0.48640387976567351249"),
    ("closed", "0.49920789210748746711"),
    ("penetrated", "0.84883077010846779627"),
    ("open", "0.93828565789478271378"),
    ("closed", "1.622122979768997782"),
    ("penetrated", "1.8762659536353646225"),
    ("open", "2.0508973497757330667"),
    ("closed", "2.1455660898949462012"),
    ("penetrated", "4.0830371288168655781"),
    ("open", "4.1333878653885825462"),
    ("closed", "4.2931102610644936176"),
)
