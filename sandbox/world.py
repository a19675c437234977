"""The simulated account: one account, one Region, one clock, and the services that share them."""

import uuid
from collections.abc import Callable
from datetime import datetime
from typing import Any

from sandbox.billing import CostExplorer
from sandbox.clock import Clock
from sandbox.cloudwatch.alarms import Alarms
from sandbox.cloudwatch.api import CloudWatch
from sandbox.cloudwatch.promql import Telemetry
from sandbox.cloudwatch.store import MetricStore
from sandbox.gate import Gate
from sandbox.iam import Iam, Sts
from sandbox.prices import Pricing, SavingsPlans
from sandbox.quotas import Quotas
from sandbox.registry import Registry
from sandbox.sagemaker.api import SageMaker
from sandbox.sagemaker.components import Components
from sandbox.sagemaker.fleet import Fleet
from sandbox.scaling.api import ApplicationAutoScaling
from sandbox.scaling.scheduled import ScheduledScaling
from sandbox.scaling.sleeping import Sleeping
from sandbox.scaling.tracking import TargetTracking
from sandbox.tagging import Tagging, Tags

type Event = dict[str, Any]


class World:
    """Everything that the simulated services know."""

    def __init__(self, now: datetime, region: str, account: str) -> None:
        self.region, self.account = region, account
        self.clock = Clock(now)
        self.gate = Gate()
        self.events: list[Event] = []
        """Every event that an AWS service has sent to EventBridge, in order."""
        self.listeners: list[Callable[[Event], None]] = []
        self._serial = 0
        self.tags = Tags()
        self.quotas = Quotas()
        self.plans = SavingsPlans(self)
        self.metrics = MetricStore(self.clock)
        self.telemetry = Telemetry()
        self.fleet = Fleet(self)
        self.components = Components(self)
        self.iam = Iam()
        self.sts = Sts(self)
        self.registry = Registry(self)
        self.scaling = ApplicationAutoScaling(self)
        self.alarms = Alarms(self)
        self.tracking = TargetTracking(self)
        scaling = (ScheduledScaling(self), self.tracking, Sleeping(self))
        for timed in (self.fleet.load, self.alarms, self.fleet, self.components, *scaling):
            self.clock.drive(timed)
        self._apis: dict[str, object] = {
            "iam": self.iam,
            "sts": self.sts,
            "ecr": self.registry,
            "sagemaker": Several(SageMaker(self), self.components),
            "cloudwatch": CloudWatch(self),
            "application-autoscaling": self.scaling,
            "resourcegroupstaggingapi": Tagging(self),
            "service-quotas": self.quotas,
            "pricing": Pricing(),
            "savingsplans": self.plans,
            "ce": CostExplorer(self, self.plans),
        }

    def api(self, service: str) -> object:
        """The simulated service, or None."""
        return self._apis.get(service)

    def offer(self, service: str, api: object) -> None:
        """Let `api` answer for a service."""
        self._apis[service] = api

    def arn(self, service: str, resource: str) -> str:
        """The ARN of a resource of this account."""
        return f"arn:aws:{service}:{self.region}:{self.account}:{resource}"

    def unique(self) -> str:
        """A UUID that is the same in every run."""
        self._serial += 1
        return str(uuid.uuid5(uuid.NAMESPACE_OID, f"{self.account}/{self.region}/{self._serial}"))

    def emit(self, source: str, detail_type: str, resources: list[str], detail: dict[str, Any]) -> None:
        """Send an event to the default bus."""
        event = {
            "version": "0",
            "id": self.unique(),
            "detail-type": detail_type,
            "source": source,
            "account": self.account,
            "time": self.clock.now.strftime("%Y-%m-%dT%H:%M:%SZ"),
            "region": self.region,
            "resources": resources,
            "detail": detail,
        }
        self.events.append(event)
        for listener in self.listeners:
            listener(event)


class Several:
    """Operations of one service that live in several classes."""

    def __init__(self, *parts: object) -> None:
        self._parts = parts

    def __getattr__(self, name: str) -> Any:
        for part in self._parts:
            if hasattr(part, name):
                return getattr(part, name)
        raise AttributeError(name)
