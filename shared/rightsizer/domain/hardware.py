"""Instance types and their accelerators, as the catalogue knows them."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from rightsizer.domain.checks import not_empty, not_negative

TRANSFORM_FAMILIES = frozenset(
    {"c5", "c6i", "c7i", "g4dn", "g5", "g6", "g6e", "inf2", "m5", "m6i", "m7i", "r6i", "r7i", "trn1"}
)
"""Families of batch transform (SageMaker API, TransformInstanceType), without those that are withdrawn."""


@dataclass(frozen=True, slots=True)
class Accelerator:
    """One accelerator chip. Figures are per chip; sources: docs/data-sources.md."""

    model: str
    vendor: str
    fp16_tflops: float
    """Dense FP16 tensor TFLOPS."""
    memory_bandwidth_gbps: float
    """Gigabytes per second."""
    memory_gib: float
    """GiB that metrics are percentages of: as the EC2 API reports it, the T4 as its driver does (15, not 16)."""
    usable_gib: float
    """GiB that a model can really use: below `memory_gib` where the listed figure is nominal."""
    compute_capability: tuple[int, int] | None
    """CUDA compute capability, or None for a chip that is not NVIDIA's."""

    def phi(self, candidate: "Accelerator") -> float:
        """How much slower the candidate is by the datasheets: the larger of the FLOPS and the bandwidth ratio."""
        flops, bandwidth = self.fp16_tflops, self.memory_bandwidth_gbps
        return max(flops / candidate.fp16_tflops, bandwidth / candidate.memory_bandwidth_gbps)


SCARCE = ("p4", "p5", "p6", "trn")
"""Families of which AWS sells capacity ahead, since it is short on demand (SageMaker API, ReservedCapacityInstanceType;
EC2 guide, Capacity Blocks for ML)."""


def is_scarce(instance_type: str) -> bool:
    """Whether an instance of that type is hard to get on demand, and to get again."""
    return instance_type.removeprefix("ml.").startswith(SCARCE)


@dataclass(frozen=True, slots=True)
class InstanceType:
    """The hardware of one hosting instance type."""

    name: str
    """With the prefix, such as ``ml.g5.2xlarge``."""
    vcpu: int
    memory_gib: float
    cpu_arch: str
    """``x86_64`` or ``arm64``."""
    accelerator: Accelerator | None
    accelerator_count: int

    def __post_init__(self) -> None:
        not_empty("InstanceType.name", self.name)
        not_negative("InstanceType.memory_gib", self.memory_gib)

    @property
    def family(self) -> str:
        """The part between the dots: ``g5`` of ``ml.g5.2xlarge``."""
        return self.name.split(".")[1]

    @property
    def size(self) -> str:
        """The last part: ``2xlarge`` of ``ml.g5.2xlarge``."""
        return self.name.split(".")[2]

    @property
    def ec2_name(self) -> str:
        """The EC2 name of the same hardware."""
        return self.name.removeprefix("ml.")

    @property
    def has_gpu(self) -> bool:
        """Whether it carries an NVIDIA GPU."""
        return self.accelerator is not None and self.accelerator.vendor == "NVIDIA"

    @property
    def has_local_nvme(self) -> bool:
        """Whether its volume is local NVMe: VolumeSizeInGB cannot be set then (SageMaker Python SDK)."""
        return "d" in self.family.removeprefix("inf").rstrip("0123456789") or self.family.startswith(
            ("g5", "g6", "g7", "p5", "p6", "trn")
        )


@dataclass(frozen=True, slots=True)
class Catalogue:
    """Every instance type that the program knows, by name."""

    types: Mapping[str, InstanceType]
    incomplete: Mapping[str, str] = field(default_factory=dict)
    """Types that exist but lack a figure that decisions need, and which; `find` does not return them."""

    def find(self, name: str) -> InstanceType | None:
        """The type of that name, or None when the catalogue has no row for it."""
        return self.types.get(name)

    def __iter__(self) -> Iterator[InstanceType]:
        return iter(self.types.values())
