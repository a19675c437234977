"""Rows of the compiled tables to the catalogue of hardware."""

from collections.abc import Iterable, Mapping

from rightsizer.catalog.tables import AcceleratorRow, InstanceRow
from rightsizer.domain.hardware import Accelerator, Catalogue, InstanceType


def catalogue(instances: Iterable[InstanceRow], accelerators: Iterable[AcceleratorRow]) -> Catalogue:
    """The catalogue; types whose accelerator lacks a figure that decisions need go to `incomplete`, with what lacks."""
    chips = {row.model: _chip(row) for row in accelerators}
    types: dict[str, InstanceType] = {}
    incomplete: dict[str, str] = {}
    for row in instances:
        match _accelerator(row, chips):
            case str() as missing:
                incomplete[row.name] = missing
            case chip:
                types[row.name] = InstanceType(
                    row.name, row.vcpu, row.memory_gib, row.cpu_arch, chip, row.accelerator_count
                )
    return Catalogue(types, incomplete)


def _accelerator(row: InstanceRow, chips: Mapping[str, Accelerator | str]) -> Accelerator | str | None:
    if not row.accelerator:
        return None
    return chips.get(row.accelerator, f"no figures are known for the accelerator {row.accelerator}")


def _chip(row: AcceleratorRow) -> Accelerator | str:
    if row.fp16_tflops is None:
        return f"the FP16 speed of the accelerator {row.model} is not known"
    if row.memory_bandwidth_gbps is None:
        return f"the memory bandwidth of the accelerator {row.model} is not known"
    return Accelerator(
        row.model,
        row.vendor,
        row.fp16_tflops,
        row.memory_bandwidth_gbps,
        row.memory_gib,
        row.usable_gib,
        _capability(row.compute_capability),
    )


def _capability(text: str) -> tuple[int, int] | None:
    if not text:
        return None
    major, _, minor = text.partition(".")
    return int(major), int(minor or 0)
