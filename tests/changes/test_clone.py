"""A clone carries every field or is refused: the traps of cloning an endpoint configuration, one by one."""

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rightsizer import catalog
from rightsizer.catalog import catalogue
from rightsizer.changes.clone import CARRIED, ClonedConfig, clone_config, content_hash
from rightsizer.domain.live_state import ConfigSight
from rightsizer.domain.option import Target
from rightsizer.domain.plan import VariantCount
from rightsizer.domain.reason import Code, Reason

CATALOGUE = catalogue(catalog.instances(), catalog.accelerators())
WANTED = (VariantCount("AllTraffic", "ml.g5.xlarge", 1, 1.0),)
TARGET = Target("ml.g5.xlarge", 1)


def source(variant: dict[str, Any] | None = None, **config: Any) -> ConfigSight:
    spec = {
        "VariantName": "AllTraffic",
        "ModelName": "m",
        "InstanceType": "ml.g5.4xlarge",
        "InitialInstanceCount": 2,
        "InitialVariantWeight": 1.0,
        **(variant or {}),
    }
    body = {"EndpointConfigName": "cfg", "EndpointConfigArn": "arn", "ProductionVariants": [spec], **config}
    return ConfigSight("cfg", body, datetime(2026, 1, 1, tzinfo=UTC), tags={"team": "search", "aws:x": "y"})


def with_key(key: str) -> ConfigSight:
    seen = source()
    return ConfigSight(seen.name, {**seen.body, key: "something"}, seen.created_at)


def made(seen: ConfigSight, target: Target = TARGET, wanted: tuple[VariantCount, ...] = WANTED) -> ClonedConfig:
    found = clone_config(seen, wanted, target, CATALOGUE, {"rightsizer:change": "c-1"})
    assert isinstance(found, ClonedConfig), found
    return found


def codes(seen: ConfigSight, kind: str = "ml.g5.xlarge") -> set[Code]:
    wanted = (VariantCount("AllTraffic", kind, 1, 1.0),)
    found = clone_config(seen, wanted, Target(kind, 1), CATALOGUE, {})
    assert not isinstance(found, ClonedConfig)
    assert all(isinstance(r, Reason) for r in found)
    return {r.code for r in found}


def test_type_count_and_live_weight_change_and_nothing_else_does() -> None:
    extra = {"RoutingConfig": {"RoutingStrategy": "LEAST_OUTSTANDING_REQUESTS"}, "EnableSSMAccess": False}
    body = made(source(extra, VpcConfig={"Subnets": ["s"]}, EnableNetworkIsolation=True)).body
    variant = body["ProductionVariants"][0]
    assert (variant["InstanceType"], variant["InitialInstanceCount"]) == ("ml.g5.xlarge", 1)
    assert variant["RoutingConfig"] == extra["RoutingConfig"]
    assert variant["EnableSSMAccess"] is False
    assert body["VpcConfig"] == {"Subnets": ["s"]}
    assert body["EnableNetworkIsolation"] is True
    assert "EndpointConfigArn" not in body


def test_detailed_observability_is_not_switched_on_by_cloning() -> None:
    assert made(source()).body["MetricsConfig"]["EnableDetailedObservability"] is False
    seen = source(MetricsConfig={"EnableDetailedObservability": True, "EnableEnhancedMetrics": True})
    assert made(seen).body["MetricsConfig"] == {"EnableDetailedObservability": True, "EnableEnhancedMetrics": True}


def test_tags_are_carried_without_those_of_aws() -> None:
    assert made(source()).body["Tags"] == [
        {"Key": "rightsizer:change", "Value": "c-1"},
        {"Key": "team", "Value": "search"},
    ]


def test_a_volume_is_dropped_where_the_target_has_local_nvme() -> None:
    seen = source({"InstanceType": "ml.p3.2xlarge", "VolumeSizeInGB": 100})
    assert "VolumeSizeInGB" not in made(seen).body["ProductionVariants"][0]


def test_a_capture_that_was_stopped_stays_stopped() -> None:
    seen = source(DataCaptureConfig={"EnableCapture": True, "InitialSamplingPercentage": 5})
    found = clone_config(seen, WANTED, TARGET, CATALOGUE, {}, capture_stopped=True)
    assert isinstance(found, ClonedConfig)
    assert found.body["DataCaptureConfig"]["EnableCapture"] is False


@pytest.mark.parametrize("value", [False, 0, True, "x"])
def test_an_unknown_field_of_a_variant_is_refused_whatever_it_says(value: Any) -> None:
    assert codes(source({"SomethingNew": value})) == {Code.UNKNOWN_FIELD}


@pytest.mark.parametrize("field", ["ServerlessConfig", "CapacityReservationConfig", "AcceleratorPartitionLayouts"])
def test_what_is_tied_to_its_hardware_is_refused(field: str) -> None:
    assert codes(source({field: {"x": 1}})) == {Code.OTHER_KIND}


@given(st.text(min_size=1).filter(lambda k: k not in CARRIED and k not in ("EndpointConfigArn", "CreationTime")))
def test_any_field_that_is_not_known_is_refused(key: str) -> None:
    if key in ("EndpointConfigName", "ResponseMetadata"):
        return
    assert codes(with_key(key)) == {Code.UNKNOWN_FIELD}


def test_a_field_that_the_service_model_does_not_know_is_refused() -> None:
    seen = source()
    hidden = ConfigSight(seen.name, seen.body, seen.created_at, ("ProductionVariants[0].NewThing",))
    assert codes(hidden) == {Code.UNKNOWN_FIELD}


def test_a_key_of_kms_is_not_taken_to_local_nvme() -> None:
    assert Code.KMS_ON_NVME in codes(source(KmsKeyId="k"))


def test_another_vendor_is_refused() -> None:
    assert Code.ANOTHER_VENDOR in codes(source(), "ml.inf2.xlarge")


def test_another_cpu_architecture_is_refused() -> None:
    assert Code.ANOTHER_ARCHITECTURE in codes(source({"InstanceType": "ml.c7i.xlarge"}), "ml.c7g.xlarge")


@given(st.from_regex(r"[a-zA-Z0-9](-*[a-zA-Z0-9]){0,62}", fullmatch=True).filter(lambda n: len(n) <= 63))
def test_the_name_is_valid_and_the_same_for_the_same_content(name: str) -> None:
    seen = source()
    renamed = ConfigSight(name, seen.body, seen.created_at)
    first, again = made(renamed), made(ConfigSight(made(renamed).name, seen.body, seen.created_at))
    assert len(first.name) <= 63
    assert "--" not in first.name[-14:]
    assert first.content_hash == again.content_hash == content_hash(first.body)


def test_pools_replace_the_type() -> None:
    variant = made(source(), Target("ml.g5.xlarge", 1, pools=("ml.g5.xlarge", "ml.g5.4xlarge"))).body[
        "ProductionVariants"
    ][0]
    assert "InstanceType" not in variant
    assert [p["Priority"] for p in variant["InstancePools"]] == [1, 2]


def test_one_type_replaces_the_pools_of_the_source() -> None:
    pools = [{"InstanceType": "ml.g5.xlarge", "Priority": 1}, {"InstanceType": "ml.g5.4xlarge", "Priority": 2}]
    variant = made(source({"InstanceType": None, "InstancePools": pools})).body["ProductionVariants"][0]
    assert variant["InstanceType"] == "ml.g5.xlarge"
    assert "InstancePools" not in variant


def test_pools_that_are_not_changed_stay_as_they_are() -> None:
    pools = [{"InstanceType": "ml.g5.xlarge", "Priority": 1}]
    seen = source({"InstanceType": None, "InstancePools": pools})
    variant = made(seen, wanted=(VariantCount("AllTraffic", "", 2, 1.0),)).body["ProductionVariants"][0]
    assert variant["InstancePools"] == pools
    assert "InstanceType" not in variant
