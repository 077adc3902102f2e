"""FMUs: models for simulators that implement the Functional Mock-up Interface 2.0 or 3.0."""

from kanegen.emission.fmu.export import export_fmu as export_fmu
