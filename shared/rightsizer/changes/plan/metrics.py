"""A configuration that is refused for switching metrics off is made without saying so.

A clone sends both flags of MetricsConfig as false, since AWS switches detailed observability on by default. Whether
every Region knows the field is not documented; where it is refused, there is nothing to switch off.
"""

import re
from dataclasses import replace

from rightsizer.domain.change import Change, FailureClass
from rightsizer.domain.plan import Step, StepKind
from rightsizer.errors import RightsizerError, WriteRefusedError

FIELDS = re.compile(r"\b(MetricsConfig|EnableDetailedObservability|EnableEnhancedMetrics)\b", re.IGNORECASE)


def without_metrics(change: Change, step: Step, error: RightsizerError) -> tuple[Change, str]:
    """The change whose step leaves MetricsConfig out, and the journal's line; empty where the refusal is another."""
    asked = step.params.get("MetricsConfig")
    refused = isinstance(error, WriteRefusedError) and error.code.startswith("Validation")
    if step.kind is not StepKind.CREATE_CONFIG or not asked or any(asked.values()) or not refused:
        return change, ""
    if not FIELDS.search(str(error)):
        return change, ""
    bare = replace(step, params={key: value for key, value in step.params.items() if key != "MetricsConfig"})
    prepare = tuple(bare if known == step else known for known in change.plan.prepare)
    said = f"again:{FailureClass.UNKNOWN.value}:MetricsConfig is refused here, so it is left out: {error}"
    return replace(change, plan=replace(change.plan, prepare=prepare)), said[:500]
