"""The sandbox as its users hold it: a simulated AWS account for tests, the demo and the benchmarks.

    with Sandbox(now=datetime(2026, 11, 2, 9, tzinfo=UTC)) as box:
        box.add_endpoint("chat", instance_type="ml.g5.12xlarge", count=2)
        box.client("sagemaker").describe_endpoint(EndpointName="chat")
        box.clock.advance(timedelta(minutes=5))

Every boto3 client that is made inside the block talks to the account; nothing leaves the process.
"""

import os
from collections.abc import Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from types import SimpleNamespace, TracebackType
from typing import Any, Self
from unittest.mock import patch

import boto3
import botocore.endpoint
from botocore.config import Config
from botocore.retries.bucket import TokenBucket
from moto import mock_aws
from moto.dynamodb.models import table

from sandbox import bridge
from sandbox.clock import Clock
from sandbox.gate import CallLog, Gate
from sandbox.sagemaker.deployment import Ending
from sandbox.sagemaker.load import LoadModel
from sandbox.seeding import Seeding
from sandbox.world import Event, World

MONDAY = datetime(2026, 11, 2, 9, 0, tzinfo=UTC)


class Sandbox(Seeding):
    """One account in one Region, in this process, with its own time.

    moto keeps one set of data for the process, so only one sandbox runs at a time. Services that moto simulates well
    (DynamoDB, SQS, SNS, S3, Secrets Manager, EC2, Auto Scaling groups) are moto's, and keep the machine's time; only
    DynamoDB's tables and backups are made at the account's.
    """

    def __init__(self, now: datetime = MONDAY, region: str = "eu-west-1", account: str = "111122223333") -> None:
        bridge.install()
        self.world = World(now, region, account)
        self._stack = ExitStack()
        self._clients: dict[str, Any] = {}

    def __enter__(self) -> Self:
        bridge.enter(self.world)
        self._stack.callback(bridge.leave, self.world)
        # moto empties its services when it begins and when it ends: without this, each time with a thousand images.
        self._stack.enter_context(patch.dict(os.environ, {"MOTO_EC2_LOAD_DEFAULT_AMIS": "false"}))
        self._stack.enter_context(mock_aws(config={"core": {"reset_boto3_session": False}}))
        self._stack.enter_context(patch.dict(os.environ, self._environment()))
        for name in ("AWS_PROFILE", "AWS_ENDPOINT_URL"):
            os.environ.pop(name, None)  # patch.dict puts them back
        # botocore's pauses between attempts cost nothing here
        self._stack.enter_context(patch.object(botocore.endpoint, "time", SimpleNamespace(sleep=lambda seconds: None)))
        # The adaptive retry mode waits on a condition of a thread, in real time, once a call was throttled.
        self._stack.enter_context(patch.object(TokenBucket, "acquire", lambda bucket, amount=1, block=True: True))
        self._stack.enter_context(patch.object(boto3, "DEFAULT_SESSION", None))
        # A table is made, and restored, at the account's time: what is dated before it was copied into it.
        self._stack.enter_context(patch.object(table, "utcnow", lambda: self.clock.now.replace(tzinfo=None)))
        self._session = boto3.Session(region_name=self.region)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._clients.clear()
        self._stack.close()

    def _environment(self) -> dict[str, str]:
        return {
            "AWS_ACCESS_KEY_ID": "AKIAIOSFODNN7EXAMPLE",  # pragma: allowlist secret (AWS's own example)
            "AWS_SECRET_ACCESS_KEY": "sandbox",
            "AWS_SESSION_TOKEN": "sandbox",
            "AWS_DEFAULT_REGION": self.region,
            "AWS_REGION": self.region,
            "AWS_CONFIG_FILE": os.devnull,
            "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
            "AWS_EC2_METADATA_DISABLED": "true",
            "MOTO_ACCOUNT_ID": self.account,
        }

    @property
    def region(self) -> str:
        """The Region."""
        return self.world.region

    @property
    def account(self) -> str:
        """The account number."""
        return self.world.account

    @property
    def clock(self) -> Clock:
        """The account's time."""
        return self.world.clock

    @property
    def gate(self) -> Gate:
        """Records requests, and refuses or kills as told."""
        return self.world.gate

    @property
    def calls(self) -> CallLog:
        """Every request that passed, in order."""
        return self.world.gate.calls

    @property
    def events(self) -> list[Event]:
        """Every event that AWS services sent to EventBridge."""
        return self.world.events

    def client(self, service: str, region: str | None = None) -> Any:
        """A boto3 client of the account, made once for each service."""
        key = f"{service}/{region or self.region}"
        if key not in self._clients:
            config = Config(retries={"mode": "standard", "max_attempts": 3})
            self._clients[key] = self._session.client(service, region_name=region, config=config)  # type: ignore[call-overload]
        return self._clients[key]

    def deny(self, *actions: str) -> None:
        """Refuse IAM actions, such as ``sagemaker:UpdateEndpoint``, from now on."""
        self.gate.deny(*actions)

    def script_deployment(self, endpoint: str, *endings: Ending | str) -> None:
        """Say how the next updates (or scalings) of an endpoint end, one after the other."""
        self.world.fleet.scripts.setdefault(endpoint, []).extend(Ending(ending) for ending in endings)

    def script_component(self, component: str, *endings: Ending | str) -> None:
        """Say how the next rolls of an inference component end, one after the other."""
        self.world.components.scripts.setdefault(component, []).extend(Ending(ending) for ending in endings)

    def load(self, endpoint: str, model: LoadModel | None) -> None:
        """Drive an endpoint by `model(minute, instance_type, count)` from now on, or stop with None."""
        self.world.fleet.load.set(endpoint, model)

    def status(self, endpoint: str) -> str:
        """The endpoint's status, without a request."""
        return self.world.fleet.endpoint(endpoint).status

    def config_name(self, endpoint: str) -> str:
        """The configuration that the endpoint carries, without a request."""
        return self.world.fleet.endpoint(endpoint).config_name

    def counts(self, endpoint: str) -> dict[str, int]:
        """Desired instances by variant, without a request."""
        return {v.name: v.desired_count for v in self.world.fleet.endpoint(endpoint).variants.values()}

    def remove_endpoint(self, endpoint: str) -> None:
        """Somebody deleted the endpoint."""
        self.world.fleet.remove(self.world.fleet.endpoint(endpoint))

    def events_of(self, detail_type: str) -> Sequence[Event]:
        """Events of one detail-type, oldest first."""
        return [event for event in self.events if event["detail-type"] == detail_type]
