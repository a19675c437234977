"""The endpoint that advice ends in, as neutral facts that CloudFormation and Terraform are written from."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from rightsizer.advice.answer import Action, Advice, AdvisedOption, Hosting, Purchase
from rightsizer.advice.speed import TARGET_USE
from rightsizer.advice.workload import Traffic, Workload
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
OPENS, LASTS, LATEST = 9, 8, 23
"""Hour in which a scheduled endpoint starts, hours that it runs where none are given, and its latest end."""
WORKING_DAYS = 22
"""Days a month up to which a schedule takes working days only."""
NO_TYPE = "The size of the model is not known, so no type is advised: measure its memory on any large GPU, then choose."
NO_MEMORY = "MB of memory. The size of the model is not known, so none is advised: measure it, then choose."


@dataclass(frozen=True, slots=True)
class Blueprint:
    """One endpoint with its scaling, guardrail and tags."""

    hosting: Hosting
    comment: str
    instance_type: str = ""
    """Empty where the size of the model is not known: the template then asks for it."""
    count: int = 1
    most: int = 2
    """Instances that autoscaling may start."""
    requests_per_minute: float | None = None
    """Requests a minute that one instance should get; None where nobody knows yet."""
    p95_ms: float | None = None
    memory_mb: int = 0
    """Of a serverless endpoint; 0 where the size of the model is not known."""
    tags: Mapping[str, str] = field(default_factory=dict)
    hours: tuple[str, str] | None = None
    """Cron expressions by which the endpoint is created and deleted, where it runs in working hours only."""

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
    guessed = option.action is Action.UNKNOWN or not workload.model.has_size
    if option.hosting is Hosting.SERVERLESS:
        memory = 0 if guessed else int((option.memory.usable_gib if option.memory else 1) * 1024)
        text = f"{environment}: serverless, {option.plan}"
        return Blueprint(option.hosting, text, p95_ms=workload.objectives.p95_ms, memory_mb=memory, tags=tags)
    monthly = option.cost.usd_per_month
    price = "" if monthly is None else f", USD {monthly:,.2f} a month in {option.cost.region} ({option.cost.as_of})"
    rate = next((e.interval.middle for e in option.estimates if e.name.startswith("requests a second of one")), None)
    scheduled = option.purchase is Purchase.SCHEDULE and option.hosting is Hosting.REALTIME
    what = f"{option.count} x {option.instance_type}{price}; {option.action.value}"
    if guessed:
        what = f"{option.count} x a type that you name; the size of the model is not known"
    return Blueprint(
        option.hosting,
        f"{environment}: {what}",
        "" if guessed else option.instance_type,
        option.count,
        max(2 * option.count, option.count + 2),
        None if rate is None or guessed else rate * 60 * TARGET_USE,
        workload.objectives.p95_ms,
        tags=tags,
        hours=_hours(workload.traffic) if scheduled else None,
    )


def _hours(traffic: Traffic) -> tuple[str, str]:
    """When the endpoint starts and ends: the given hours of a day, or eight from nine o'clock."""
    lasts = min(LATEST, max(1, round(traffic.hours_per_day or LASTS)))
    opens = min(OPENS, LATEST - lasts)
    days = "MON-FRI" if (traffic.days_per_month or WORKING_DAYS) <= WORKING_DAYS else "*"
    return f"cron(0 {opens} ? * {days} *)", f"cron(0 {opens + lasts} ? * {days} *)"
