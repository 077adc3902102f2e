"""Reports: one page of HTML about a model and its motion."""

from kanegen.reporting.report import report as report
