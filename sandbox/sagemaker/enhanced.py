"""Enhanced metrics: what each GPU of each instance publishes where a configuration has EnableEnhancedMetrics.

Dimensions: developer guide, "enhanced metrics for SageMaker AI endpoints" (InstanceId, AcceleratorId). [assumed]: the
series of the whole variant go on beside them, and GPUs are counted from 0.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sandbox.sagemaker.fleet import Fleet

GPU = "AcceleratorId"


def enhanced(fleet: "Fleet", config: str) -> bool:
    """Whether the configuration asks for enhanced metrics."""
    known = fleet.configs.get(config)
    return bool(known is not None and (known.request.get("MetricsConfig") or {}).get("EnableEnhancedMetrics"))


def gpus_of(endpoint: str, instances: int, gpus: int) -> Iterator[tuple[int, dict[str, str]]]:
    """The number of each GPU of the fleet in its instance, and its dimensions beside endpoint and variant."""
    for number in range(instances):
        for gpu in range(gpus):
            yield gpu, {"InstanceId": f"i-{endpoint}-{number}", GPU: str(gpu)}
