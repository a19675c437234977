"""The endpoint that advice ends in, as neutral facts that CloudFormation and Terraform are written from."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from rightsizer.advice.answer import Advice, AdvisedOption, Hosting
from rightsizer.advice.speed import TARGET_USE
from rightsizer.advice.workload import Workload
from rightsizer.errors import InputError

VARIANT = "AllTraffic"
ENDPOINTS = (Hosting.REALTIME, Hosting.ASYNC, Hosting.SERVERLESS)
"""Kinds of hosting that one endpoint and its configuration describe."""
BACKLOG = 5
"""Requests that wait for each instance before an asynchronous endpoint grows; an assumption."""
ERRORS = 5
"""Answers of 5XX a minute that roll an update back; an assumption."""
BAKE_S = 300
"""Seconds that a canary is watched."""


@dataclass(frozen=True, slots=True)
class Blueprint:
    """One endpoint with its scaling, guardrail and tags."""

    hosting: Hosting
    comment: str
    instance_type: str = ""
    count: int = 1
    most: int = 2
    """Instances that autoscaling may start."""
    requests_per_minute: float | None = None
    """Requests a minute that one instance should get; None where nobody knows yet."""
    p95_ms: float | None = None
    memory_mb: int = 0
    """Of a serverless endpoint."""
    tags: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_serverless(self) -> bool:
        """Whether there are no instances to count."""
        return self.hosting is Hosting.SERVERLESS

    @property
    def is_asynchronous(self) -> bool:
        """Whether requests wait in a queue."""
        return self.hosting is Hosting.ASYNC

    @property
    def least(self) -> int:
        """Instances that autoscaling keeps."""
        return 0 if self.is_asynchronous else self.count

    @property
    def has_canary(self) -> bool:
        """Whether an update can show itself on one instance first."""
        return not self.is_serverless and self.count > 1


def blueprint(workload: Workload, answer: Advice) -> Blueprint:
    """The endpoint of the best option that is one; InputError where the advice is a job or nothing."""
    option = next((each for each in answer.options if each.hosting in ENDPOINTS), None)
    if option is None:
        what = answer.options[0].hosting.value.lower() if answer.options else "nothing"
        raise InputError(f"a template describes an endpoint, and the advice is {what}; ask for --task real-time")
    variant = next((v for v in answer.environments if v.environment == workload.constraints.environment), None)
    tags: Mapping[str, str] = {"rightsizer:mode": "propose"}
    if variant is not None:
        tags = variant.tags
        option = variant.option if variant.option.hosting in ENDPOINTS else option
    return _of_option(workload, option, tags)


def _of_option(workload: Workload, option: AdvisedOption, tags: Mapping[str, str]) -> Blueprint:
    environment = workload.constraints.environment.value
    if option.hosting is Hosting.SERVERLESS:
        memory = int((option.memory.usable_gib if option.memory else 1) * 1024)
        said = f"{environment}: serverless, {option.plan}"
        return Blueprint(option.hosting, said, p95_ms=workload.objectives.p95_ms, memory_mb=memory, tags=tags)
    monthly = option.cost.usd_per_month
    price = "" if monthly is None else f", USD {monthly:,.2f} a month in {option.cost.region} ({option.cost.as_of})"
    rate = next((e.interval.middle for e in option.estimates if e.name.startswith("requests a second of one")), None)
    return Blueprint(
        option.hosting,
        f"{environment}: {option.count} x {option.instance_type}{price}; {option.action.value}",
        option.instance_type,
        option.count,
        max(2 * option.count, option.count + 2),
        None if rate is None else rate * 60 * TARGET_USE,
        workload.objectives.p95_ms,
        tags=tags,
    )
