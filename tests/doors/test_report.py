"""The report as it is deployed."""

import json
from datetime import datetime, timedelta
from typing import Any

from sandbox.traffic import Workload, write_past
from tests.doors.scene import BIG, PROPOSE, START, Scene, scene


def data(at: Scene) -> Any:
    with at.box.gate.unrecorded():
        s3, bucket = at.box.client("s3"), at.stack.parts.names["Bucket"]
        keys = [row["Key"] for row in s3.list_objects_v2(Bucket=bucket, Prefix="reports/")["Contents"]]
        (found,) = [key for key in keys if key.endswith(".json")]
        return json.loads(s3.get_object(Bucket=bucket, Key=found)["Body"].read())


def test_the_report_says_what_rightsizer_cost_and_why_each_endpoint_is_left_alone() -> None:
    with scene(now=START - timedelta(days=1)) as at:
        at.add(BIG, tags=PROPOSE)
        for name in ("tiny-serverless", "ab-test", "async-video", "tabular-cpu", "legacy-ocr", "hands-off"):
            at.add(name, days=1)
        at.sweep()
        at.until_report()
        told = data(at)
        assert [line["what"] for line in told["running_cost"]["lines"]][:3] == ["functions", "alarms", "metric reads"]
        reasons = {one["ref"]["name"]: one["reason"]["sentence"] for one in told["recommendations"]}
        assert set(reasons) == {
            BIG,
            "tiny-serverless",
            "ab-test",
            "async-video",
            "tabular-cpu",
            "legacy-ocr",
            "hands-off",
        }
        assert all(reasons.values())
        assert "serverless" in reasons["tiny-serverless"]
        assert "no accelerator" in reasons["tabular-cpu"]
        assert at.refused() == []


def test_the_report_tells_the_rest_of_the_bill_with_the_permissions_that_its_role_has() -> None:
    with scene(now=START - timedelta(days=1)) as at:
        at.add(BIG, tags=PROPOSE)
        at.add("tabular-cpu", days=1)
        fleet, ago = at.box.world.fleet, at.box.clock.now - timedelta(days=60)
        with at.box.gate.unrecorded():
            copy = {
                "EndpointConfigName": "left-behind",
                "ProductionVariants": fleet.configs[f"{BIG}-config"].request["ProductionVariants"],
            }
            at.box.client("sagemaker").create_endpoint_config(**copy)
        fleet.configs["left-behind"].created = ago
        at.sweep()
        at.until_report()
        told = data(at)
        assert told["account_unread"] == []
        found = {each["code"]: each for each in told["account_findings"]}
        assert [item["name"] for item in found["orphan-endpoint-configurations"]["items"]] == ["left-behind"]
        assert at.refused() == []


def test_the_report_proposes_office_hours_with_the_permissions_that_its_role_has() -> None:
    def shape(at: datetime) -> float:
        return 30.0 if at.weekday() < 5 and 9 <= at.hour < 17 else 0.0

    with scene(now=START - timedelta(days=1)) as at:
        work = Workload(shape, "ml.g5.xlarge", gpu_s=0.5)
        at.box.add_endpoint(
            "desk", tags=PROPOSE, created=at.box.clock.now - timedelta(days=60), instance_type="ml.g5.xlarge", count=1
        )
        write_past(at.box, "desk", work, days=30)
        at.works["desk"] = work
        at.drive("desk")
        at.sweep()
        at.until_report()
        told = data(at)
        assert told["account_unread"] == []
        (found,) = [one for one in told["account_findings"] if one["code"] == "office-hours"]
        assert found["endpoint"] == "desk"
        assert "'mon-fri 08:30-17:30 UTC'" in found["what"]
        assert found["items"] == []
        said = json.dumps(at.slack.messages[-1].blocks)
        assert "is called in 'mon-fri 08:30-17:30 UTC' alone" in said
        assert at.refused() == []
