"""Records of the office hours on the one table, and the reads and writes at AWS that only they need.

Keys: `HOURS#<endpoint>`/`HOURS` (gsi1pk=`HOURS`, gsi1sk=endpoint); the lock is that of changes,
`LOCK#ENDPOINT#<endpoint>`/`LOCK`, with the record's own id. `ASLEEP#<endpoint>`/`ASLEEP` is what people are
shown of it.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from botocore.exceptions import BotoCoreError, ClientError

from rightsizer import wire
from rightsizer.aws.artefacts import read_models
from rightsizer.aws.changes import write_error
from rightsizer.aws.components import alarm_body
from rightsizer.aws.documents import Batches, Parking, noun_with_version, other_attributes
from rightsizer.aws.errors import code_of, text_of, translate_read_errors
from rightsizer.aws.table import Row, Table, read_if_readable, read_row, readable_rows, text
from rightsizer.aws.wake_requests import drop_wake, waiting_wake
from rightsizer.domain.endpoint import EndpointRef
from rightsizer.domain.hours_record import HoursRecord, ModelBefore, Wake, queries, watched_endpoints
from rightsizer.domain.live_state import ReservationSight
from rightsizer.domain.message import SleepNote
from rightsizer.domain.office_hours import HOURS_TAG, StoppedTime
from rightsizer.domain.outcome import UnreadRow
from rightsizer.domain.plan import ACTIONS, Step, StepKind
from rightsizer.errors import ConflictError, ReadError, UnreadableError, WriteRefusedError
from rightsizer.ports.changes import AlarmsAbout

if TYPE_CHECKING:
    from types_boto3_application_autoscaling import ApplicationAutoScalingClient
    from types_boto3_cloudwatch import CloudWatchClient
    from types_boto3_resourcegroupstaggingapi import ResourceGroupsTaggingAPIClient
    from types_boto3_s3 import S3Client
    from types_boto3_sagemaker import SageMakerClient

PREFIX, SORT, ASLEEP = "HOURS#", "HOURS", "ASLEEP"
OURS = frozenset({"pk", "sk", "gsi1pk", "gsi1sk", "state", "version", "doc"})
"""Attributes of a record's item that this program writes."""
METHODS: Mapping[StepKind, tuple[str, str]] = {
    StepKind.DELETE_ENDPOINT: ("sagemaker", "delete_endpoint"),
    StepKind.CREATE_ENDPOINT: ("sagemaker", "create_endpoint"),
    StepKind.SET_CAPACITY: ("sagemaker", "update_endpoint_weights_and_capacities"),
    StepKind.REGISTER_TARGET: ("autoscaling", "register_scalable_target"),
    StepKind.PUT_POLICY: ("autoscaling", "put_scaling_policy"),
    StepKind.PUT_SCHEDULED: ("autoscaling", "put_scheduled_action"),
    StepKind.PUT_ALARM: ("cloudwatch", "put_metric_alarm"),
    StepKind.SILENCE_ALARMS: ("cloudwatch", "disable_alarm_actions"),
    StepKind.SOUND_ALARMS: ("cloudwatch", "enable_alarm_actions"),
}


@dataclass(frozen=True, slots=True)
class HoursTable:
    """Keeps the promises of `ports.changes.HoursBook`."""

    table: Table

    def load(self, endpoint: str) -> HoursRecord | None:
        """One consistent read."""
        row = self.table.get(f"{PREFIX}{endpoint}", SORT)
        return None if row is None else revive_record(row)

    def records(self, unread: list[UnreadRow] | None = None) -> Iterator[HoursRecord]:
        """One query of the index, which may be a moment old."""
        yield from readable_rows(list(self.table.index(SORT)), revive_record, unread)

    def of_endpoints(self, endpoints: Collection[str]) -> Mapping[str, HoursRecord]:
        """The records of these endpoints by name, read consistently; one that cannot be read is left out."""
        rows = Batches(self.table).read([(f"{PREFIX}{name}", SORT) for name in endpoints])
        return {record.ref.name: record for record in readable_rows(rows.values(), revive_record)}

    def stopped_times(self, endpoint: str) -> Sequence[StoppedTime]:
        """Times in which the endpoint was stopped; ReadError where its record cannot be read."""
        try:
            record = self.load(endpoint)
        except UnreadableError as error:
            raise ReadError(f"reading when {endpoint} was stopped: {error}") from error
        return () if record is None else record.stopped_times

    def save(self, record: HoursRecord) -> HoursRecord:
        """One transaction: the record, and the endpoint's lock or its release."""
        stored = replace(record, version=record.version + 1)
        item = other_attributes(record) | {
            "pk": f"{PREFIX}{record.ref.name}",
            "sk": SORT,
            "gsi1pk": SORT,
            "gsi1sk": record.ref.name,
            "state": record.state.value,
            "version": stored.version,
            "doc": wire.dump_stored(stored),
        }
        if record.version == 0:
            put = self.table.put_if(item, "attribute_not_exists(pk)")
        else:
            put = self.table.put_if(item, "version = :read", read=record.version)
        doing = f"saving the hours of {record.ref.name}"
        try:
            self.table.transact([put, *self._lock(record)], doing)
        except ConflictError as error:
            text = f"{doing}: somebody saved it in between, or a change holds the endpoint"
            raise ConflictError(text) from error
        return stored

    def _lock(self, record: HoursRecord) -> Sequence[Any]:
        key, mine = f"LOCK#ENDPOINT#{record.ref.name}", "attribute_not_exists(pk) OR change = :me"
        if record.holds_lock:
            return (self.table.put_if({"pk": key, "sk": "LOCK", "change": record.id}, mine, me=record.id),)
        held = read_if_readable(self.table.get(key, "LOCK"), lambda row: text(row, "change"))
        return (self.table.delete_if(key, "LOCK", mine, me=record.id),) if held == record.id else ()

    def waiting_wake(self, endpoint: str) -> Wake | None:
        """One consistent read of `WAKE#<endpoint>`."""
        return waiting_wake(self.table, endpoint)

    def drop_wake(self, endpoint: str, wake: Wake) -> None:
        """A conditional delete of `WAKE#<endpoint>`."""
        drop_wake(self.table, endpoint, wake)

    def show(self, note: SleepNote) -> None:
        """Put `ASLEEP#<endpoint>`."""
        key = f"{ASLEEP}#{note.endpoint}"
        doc = wire.dump_stored(note)
        self.table.put({"pk": key, "sk": ASLEEP, "state": note.state.value, "version": note.version, "doc": doc})

    def park(self, key: str, cause: str, now: datetime, tell: Callable[[str, str], bool]) -> None:
        """Tell once of a row that cannot be read; it is left as it is."""
        Parking(self.table).park(key.removesuffix(f" {SORT}"), SORT, cause, now, tell)


def revive_record(row: Row) -> HoursRecord:
    """The record of a row; UnreadableError when this release cannot read it."""
    return read_row(row, lambda found: noun_with_version(HoursRecord, found, OURS))


@dataclass(frozen=True, slots=True)
class AwsHoursAccount:
    """Keeps the promises of `ports.changes.HoursAccount`."""

    sagemaker: "SageMakerClient"
    autoscaling: "ApplicationAutoScalingClient"
    cloudwatch: "CloudWatchClient"
    tagging: "ResourceGroupsTaggingAPIClient"
    s3: "S3Client"

    def tagged_endpoints(self) -> Mapping[str, tuple[EndpointRef, Mapping[str, str]]]:
        """GetResources by the tag's key; the ARN's name is lower case, so ListEndpoints tells the name itself."""
        with translate_read_errors("tag:GetResources", f"looking for endpoints with the tag {HOURS_TAG}"):
            pages = self.tagging.get_paginator("get_resources").paginate(
                ResourceTypeFilters=["sagemaker:endpoint"], TagFilters=[{"Key": HOURS_TAG}]
            )
            rows = [row for page in pages for row in page["ResourceTagMappingList"]]
        names = self._names() if rows else {}
        found: dict[str, tuple[EndpointRef, Mapping[str, str]]] = {}
        for row in rows:
            _, partition, _, region, account, _ = row["ResourceARN"].split(":", 5)
            name = names.get(row["ResourceARN"].lower())
            if name is not None:  # tags of what was deleted may be listed for a while
                tags = {tag["Key"]: tag["Value"] for tag in row["Tags"]}
                found[name] = EndpointRef(account, region, name, partition), tags
        return found

    def _names(self) -> dict[str, str]:
        with translate_read_errors("sagemaker:ListEndpoints", "reading the names of endpoints with hours"):
            pages = self.sagemaker.get_paginator("list_endpoints").paginate(PaginationConfig={"PageSize": 100})
            return {row["EndpointArn"].lower(): row["EndpointName"] for page in pages for row in page["Endpoints"]}

    def alarms_about(self, endpoint: str, policies: Sequence[str]) -> AlarmsAbout:
        """DescribeAlarms of the whole account: there is no filter by a metric's dimension."""
        metric: list[Mapping[str, Any]] = []
        composite: list[Mapping[str, Any]] = []
        with translate_read_errors("cloudwatch:DescribeAlarms", f"looking for alarms about {endpoint}"):
            pages = self.cloudwatch.get_paginator("describe_alarms").paginate(
                AlarmTypes=["MetricAlarm", "CompositeAlarm"]
            )
            for page in pages:
                composite += [dict(alarm) for alarm in page.get("CompositeAlarms", [])]
                metric += [
                    alarm_body(alarm)
                    for alarm in page.get("MetricAlarms", [])
                    if _is_about(alarm, endpoint, frozenset(policies))
                ]
        return AlarmsAbout(tuple(metric), tuple(composite))

    def monitors(self, endpoint: str) -> tuple[str, ...]:
        """ListMonitoringSchedules by the endpoint's name."""
        with translate_read_errors("sagemaker:ListMonitoringSchedules", f"looking for monitors of {endpoint}"):
            pages = self.sagemaker.get_paginator("list_monitoring_schedules").paginate(EndpointName=endpoint)
            return tuple(row["MonitoringScheduleName"] for page in pages for row in page["MonitoringScheduleSummaries"])

    def reservations(self, arns: Sequence[str]) -> Mapping[str, ReservationSight]:
        """DescribeTrainingPlan of each; what is no training plan cannot be read and is left out."""
        found: dict[str, ReservationSight] = {}
        for arn in (arn for arn in arns if ":training-plan/" in arn):
            with translate_read_errors("sagemaker:DescribeTrainingPlan", f"looking at the training plan {arn}"):
                try:
                    plan = self.sagemaker.describe_training_plan(TrainingPlanName=arn.rpartition("/")[2])
                except ClientError as error:
                    if code_of(error) == "ResourceNotFound":
                        continue
                    raise
            found[arn] = ReservationSight(plan["Status"], plan.get("EndTime"))
        return found

    def models(self, names: Sequence[str]) -> Mapping[str, ModelBefore]:
        """DescribeModel of each, and ListObjectsV2 of what it names."""
        return read_models(self.sagemaker, self.s3, names)

    def perform(self, step: Step) -> None:
        """Call the one operation of the step with its own parameters."""
        if step.kind not in METHODS:
            raise WriteRefusedError(step.key, "NotOfTheHours", f"{step.kind} is no write of the office hours")
        service, method = METHODS[step.kind]
        try:
            getattr(getattr(self, service), method)(**step.params)
        except (ClientError, BotoCoreError) as error:
            if step.kind is StepKind.DELETE_ENDPOINT and _is_second_answer(error):
                text = f"{step.key}: an earlier attempt of the same call may have deleted it: {error}"
                raise ReadError(text) from error
            raise write_error(error, step) from error


def _is_second_answer(error: ClientError | BotoCoreError) -> bool:
    """Whether AWS finds nothing to delete after botocore had sent the call before and got no answer.

    DeleteEndpoint answers ValidationException "Could not find endpoint", or "Cannot update in-progress endpoint" while
    the endpoint is being deleted; ResponseMetadata.RetryAttempts counts the earlier attempts (botocore, "Retries").
    """
    if not isinstance(error, ClientError) or not error.response.get("ResponseMetadata", {}).get("RetryAttempts"):
        return False
    return any(said in text_of(error).lower() for said in ("could not find endpoint", "in-progress endpoint"))


def _is_about(alarm: Mapping[str, Any], endpoint: str, policies: frozenset[str]) -> bool:
    if endpoint in watched_endpoints(alarm) or queries(alarm, endpoint):
        return True
    return any(action in policies for key in ACTIONS for action in alarm.get(key, ()))
