"""Which endpoints an alarm means (port `AlarmReader`)."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from rightsizer.aws.errors import translate_read_errors
from rightsizer.aws.session import Session
from rightsizer.errors import PermissionMissingError, ReadError, ThrottledError, VanishedError

if TYPE_CHECKING:
    from types_boto3_cloudwatch import CloudWatchClient

DEPTH = 3
"""How deep children of composite alarms are followed."""
MOST_NAMES = 100
"""Names that one DescribeAlarms takes; the rule of a composite alarm has at most as many children."""
_KINDS = ("MetricAlarms", "CompositeAlarms")


class CloudWatchAlarms:
    """Asks CloudWatch which endpoints are behind an alarm."""

    def __init__(self, session: Session) -> None:
        self._client: CloudWatchClient = session.client("cloudwatch")

    def endpoints_in_alarm(self, alarm: str) -> tuple[str, ...]:
        """Endpoint names of the contributors in ALARM, or in the dimensions of the alarm and its children.

        An alarm that no longer exists means no endpoint.
        """
        try:
            names = list(self._contributors(alarm))
        except (PermissionMissingError, ThrottledError):
            raise
        except VanishedError:
            return ()
        except ReadError:
            names = []  # not an alarm with contributors: its dimensions tell
        return tuple(dict.fromkeys(names or self._dimensions({"AlarmNames": [alarm]}, DEPTH)))

    def _contributors(self, alarm: str) -> Iterator[str]:
        token: dict[str, Any] = {}
        while True:
            with translate_read_errors(
                "cloudwatch:DescribeAlarmContributors", f"asking which endpoints the alarm {alarm} means"
            ):
                page = self._client.describe_alarm_contributors(AlarmName=alarm, **token)
            for contributor in page["AlarmContributors"]:
                name = contributor["ContributorAttributes"].get("EndpointName")
                if name:
                    yield name
            if not page.get("NextToken"):
                return
            token = {"NextToken": page["NextToken"]}

    def _dimensions(self, which: Mapping[str, Any], depth: int) -> Iterator[str]:
        with translate_read_errors("cloudwatch:DescribeAlarms", "reading the dimensions of an alarm"):
            pages = self._client.get_paginator("describe_alarms").paginate(
                AlarmTypes=["MetricAlarm", "CompositeAlarm"], **which
            )
            found: list[Any] = list(pages)
        for page in found:
            for alarm in page.get("MetricAlarms", ()):
                yield from endpoints_of(alarm)
            for composite in page.get("CompositeAlarms", ()) if depth else ():
                if firing := self._children_in_alarm(composite["AlarmName"]):
                    yield from self._dimensions({"AlarmNames": firing}, depth - 1)

    def _children_in_alarm(self, composite: str) -> list[str]:
        """Names of the children in ALARM. The request takes no other parameter, and its answer has no dimensions."""
        with translate_read_errors("cloudwatch:DescribeAlarms", f"reading the children of the alarm {composite}"):
            pages: Any = self._client.get_paginator("describe_alarms").paginate(ChildrenOfAlarmName=composite)
            found = [alarm for page in pages for kind in _KINDS for alarm in page.get(kind, ())]
        return [alarm["AlarmName"] for alarm in found if alarm["StateValue"] == "ALARM"][:MOST_NAMES]


def endpoints_of(alarm: Mapping[str, Any]) -> Iterator[str]:
    """Endpoint names in the dimensions of a metric alarm, its metric math included."""
    stats = [query.get("MetricStat", {}).get("Metric", {}) for query in alarm.get("Metrics", ())]
    for metric in (alarm, *stats):
        for dimension in metric.get("Dimensions", ()):
            if dimension["Name"] == "EndpointName":
                yield dimension["Value"]
