"""A clone carries every field or is refused: the traps of cloning an endpoint configuration, one by one."""

import re
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rightsizer import catalog
from rightsizer.catalog import catalogue
from rightsizer.changes.clone import (
    CARRIED,
    ClonedConfig,
    Wanted,
    clone_config,
    content_hash,
    rename_clone,
    written_counts,
)
from rightsizer.domain.live_state import ConfigSight
from rightsizer.domain.option import ScaleIn, Target
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
    found = clone_config(seen, Wanted(wanted, target, "AllTraffic"), CATALOGUE, {"rightsizer:change": "c-1"})
    assert isinstance(found, ClonedConfig), found
    return found


def codes(seen: ConfigSight, kind: str = "ml.g5.xlarge") -> set[Code]:
    wanted = (VariantCount("AllTraffic", kind, 1, 1.0),)
    found = clone_config(seen, Wanted(wanted), CATALOGUE, {})
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
    found = clone_config(seen, Wanted(WANTED), CATALOGUE, {}, capture_stopped=True)
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


def cloned_variant(
    spec: dict[str, Any] | None = None, target: Target = TARGET, wanted: VariantCount = WANTED[0]
) -> dict[str, Any]:
    """The one variant of the request, made of a source with `spec`."""
    (variant,) = made(source(spec), target, (wanted,)).body["ProductionVariants"]
    assert isinstance(variant, dict)
    return variant


def test_the_request_names_each_field_of_the_new_configuration() -> None:
    clone = made(source(KmsKeyId=None, ExecutionRoleArn="role"))
    assert clone.body == {
        "EndpointConfigName": clone.name,
        "ProductionVariants": [
            {
                "VariantName": "AllTraffic",
                "ModelName": "m",
                "InstanceType": "ml.g5.xlarge",
                "InitialInstanceCount": 1,
                "InitialVariantWeight": 1.0,
            }
        ],
        "ExecutionRoleArn": "role",
        "MetricsConfig": {"EnableEnhancedMetrics": False, "EnableDetailedObservability": False},
        "Tags": [{"Key": "rightsizer:change", "Value": "c-1"}, {"Key": "team", "Value": "search"}],
    }


def test_the_weight_is_the_live_one() -> None:
    assert cloned_variant(wanted=VariantCount("AllTraffic", "ml.g5.xlarge", 1, 0.25))["InitialVariantWeight"] == 0.25


@pytest.mark.parametrize(
    ("named", "count"),
    [
        ({}, 1),
        ({"ManagedInstanceScaling": {"Status": "ENABLED"}}, 1),
        ({"InitialInstanceCount": None}, 1),
        ({"InitialInstanceCount": None, "ManagedInstanceScaling": {"Status": "ENABLED"}}, None),
    ],
)
def test_the_count_is_left_out_only_where_managed_scaling_holds_it_and_the_source_names_none(
    named: dict[str, Any], count: int | None
) -> None:
    assert cloned_variant(named).get("InitialInstanceCount") == count


POOLS = ("ml.g5.xlarge", "ml.g5.4xlarge")
OWN_POOLS = [{"InstanceType": "ml.g5.2xlarge", "Priority": 1}]
TWO_POOLS = [{"InstanceType": POOLS[0], "Priority": 1}, {"InstanceType": POOLS[1], "Priority": 2}]
"""The pools of a request for `POOLS`."""


def test_pools_and_routing_go_to_the_changed_variant_and_every_other_one_stays_though_its_count_moved() -> None:
    seen = source()
    first = seen.body["ProductionVariants"][0]
    other = {**first, "VariantName": "B", "RoutingConfig": {"RoutingStrategy": "RANDOM"}}
    both = ConfigSight("cfg", {**seen.body, "ProductionVariants": [first, other]}, seen.created_at)
    target = Target("ml.g5.xlarge", 1, pools=POOLS, routing="LEAST_OUTSTANDING_REQUESTS")
    clone = made(both, target, (*WANTED, VariantCount("B", "ml.g5.4xlarge", 3, 1.0)))
    changed, stays = clone.body["ProductionVariants"]
    assert (changed["InstancePools"], changed["RoutingConfig"]) == (TWO_POOLS, {"RoutingStrategy": target.routing})
    assert "InstanceType" not in changed
    assert stays == {**other, "InitialInstanceCount": 3}


def test_pools_take_the_place_of_pools() -> None:
    spec = {"InstanceType": None, "InstancePools": OWN_POOLS}
    assert cloned_variant(spec, Target("ml.g5.xlarge", 1, pools=POOLS))["InstancePools"] == TWO_POOLS


def test_a_variant_of_pools_without_a_wanted_type_keeps_them_though_its_count_changes() -> None:
    spec = {"InstanceType": None, "InstancePools": OWN_POOLS}
    variant = cloned_variant(spec, wanted=VariantCount("AllTraffic", "", 3, 1.0))
    assert (variant["InstancePools"], variant["InitialInstanceCount"]) == (OWN_POOLS, 3)
    assert "InstanceType" not in variant


@pytest.mark.parametrize("wanted", [WANTED[0], VariantCount("AllTraffic", "ml.g5.4xlarge", 2, 1.0)])
@pytest.mark.parametrize("config", [None, {"RoutingStrategy": "RANDOM"}, {"RoutingStrategy": "RANDOM", "More": 1}])
def test_the_routing_of_the_target_replaces_the_strategy_and_no_other_field(
    wanted: VariantCount, config: dict[str, Any] | None
) -> None:
    target = Target("ml.g5.xlarge", 1, routing="LEAST_OUTSTANDING_REQUESTS")
    routing = cloned_variant({"RoutingConfig": config}, target, wanted)["RoutingConfig"]
    assert routing == {**(config or {}), "RoutingStrategy": "LEAST_OUTSTANDING_REQUESTS"}


@pytest.mark.parametrize("strategy", ["LEAST_OUTSTANDING_REQUESTS", "PREFIX_AWARE"])
def test_what_belongs_to_routing_by_prompt_prefix_goes_with_that_strategy(strategy: str) -> None:
    prefix = {"PrefixAwareRoutingConfig": {"PrefixLength": 1024, "ConcurrencyThreshold": 8}}
    target = Target("ml.g5.xlarge", 1, routing=strategy)
    routing = cloned_variant({"RoutingConfig": {"RoutingStrategy": "PREFIX_AWARE", **prefix}}, target)["RoutingConfig"]
    assert routing == {"RoutingStrategy": strategy, **(prefix if strategy == "PREFIX_AWARE" else {})}


SCALING = {"Status": "ENABLED", "MinInstanceCount": 1, "ScaleInPolicy": {"MaximumStepSize": 3, "CooldownInMinutes": 9}}


@pytest.mark.parametrize("own", [{"MaximumStepSize": 3, "CooldownInMinutes": 9}, {}, None])
def test_a_scale_in_policy_replaces_its_own_fields_of_managed_scaling(own: dict[str, Any] | None) -> None:
    target = Target("", 0, scale_in=ScaleIn("AllTraffic", "IDLE_RELEASE", cooldown_minutes=5))
    scaling = {**SCALING, "ScaleInPolicy": own}
    assert cloned_variant({"ManagedInstanceScaling": scaling}, target)["ManagedInstanceScaling"] == {
        "Status": "ENABLED",
        "MinInstanceCount": 1,
        "ScaleInPolicy": {**(own or {}), "Strategy": "IDLE_RELEASE", "CooldownInMinutes": 5},
    }


def test_a_scale_in_policy_leaves_the_other_variants_alone() -> None:
    seen = source({"ManagedInstanceScaling": SCALING})
    first = seen.body["ProductionVariants"][0]
    both = ConfigSight(
        "cfg", {**seen.body, "ProductionVariants": [first, {**first, "VariantName": "B"}]}, seen.created_at
    )
    clone = made(both, Target("", 0, scale_in=ScaleIn("B", "IDLE_RELEASE", cooldown_minutes=5)), written_counts(both))
    changed = [v["ManagedInstanceScaling"]["ScaleInPolicy"] for v in clone.body["ProductionVariants"]]
    asked = {"MaximumStepSize": 3, "Strategy": "IDLE_RELEASE", "CooldownInMinutes": 5}
    assert changed == [SCALING["ScaleInPolicy"], asked]


def test_a_note_tells_what_the_clone_does_not_carry_or_keeps_off() -> None:
    seen = source(
        {"InstanceType": "ml.p3.2xlarge", "VolumeSizeInGB": 100}, DataCaptureConfig={"EnableCapture": True, "Kept": 5}
    )
    found = clone_config(seen, Wanted(WANTED), CATALOGUE, {}, capture_stopped=True)
    assert isinstance(found, ClonedConfig)
    assert found.notes == (
        "VolumeSizeInGB 100 of AllTraffic is dropped: ml.g5.xlarge has local NVMe",
        "detailed observability stays off, which AWS would switch on for a new configuration",
        "data capture was stopped by hand and stays stopped",
    )
    assert found.body["DataCaptureConfig"] == {"EnableCapture": False, "Kept": 5}


@pytest.mark.parametrize("named", [True, False])
def test_a_clone_that_carries_everything_has_no_note(named: bool) -> None:
    assert made(source(MetricsConfig={"EnableDetailedObservability": named})).notes == ()


@pytest.mark.parametrize(
    ("capture", "stopped"),
    [({"EnableCapture": True}, False), ({"EnableCapture": False}, True), ({}, True), (None, True)],
)
def test_a_capture_that_runs_or_never_ran_is_carried_as_it_is(capture: dict[str, Any] | None, stopped: bool) -> None:
    seen = source(DataCaptureConfig=capture, MetricsConfig={"EnableDetailedObservability": False})
    found = clone_config(seen, Wanted(WANTED), CATALOGUE, {}, capture_stopped=stopped)
    assert isinstance(found, ClonedConfig)
    assert (found.body.get("DataCaptureConfig"), found.notes) == (capture, ())


def test_a_capture_runs_on_where_nobody_is_named_who_stopped_it() -> None:
    clone = made(source(DataCaptureConfig={"EnableCapture": True}))
    assert clone.body["DataCaptureConfig"] == {"EnableCapture": True}


def test_a_volume_stays_on_a_type_that_the_catalogue_does_not_know() -> None:
    spec = {"InstanceType": "ml.new.xlarge", "VolumeSizeInGB": 100}
    assert cloned_variant(spec, wanted=VariantCount("AllTraffic", "ml.new.xlarge", 1, 1.0))["VolumeSizeInGB"] == 100


@pytest.mark.parametrize(
    ("name", "base"),
    [
        ("cfg", "cfg"),
        ("cfg-rs-0123456789", "cfg"),
        ("cfg-rs-0123abcdef-rs-0123456789", "cfg-rs-0123abcdef"),
        ("cfg-rs-0123456789-blue", "cfg-rs-0123456789-blue"),
        ("cfg-rs-012345678", "cfg-rs-012345678"),
        ("a" * 63, "a" * 49),
        ("a" * 40 + "-" * 12 + "a" * 11, "a" * 40),
    ],
)
def test_a_clone_is_named_by_its_source_and_ten_digits_of_what_it_says(name: str, base: str) -> None:
    seen = source()
    clone = made(ConfigSight(name, seen.body, seen.created_at))
    assert clone.name == f"{base}-rs-{clone.content_hash[:10]}"
    assert re.fullmatch("[0-9a-f]{64}", clone.content_hash)


def test_a_clone_with_another_body_has_the_name_and_the_hash_of_that() -> None:
    seen = source(MetricsConfig={"EnableDetailedObservability": False})
    clone = made(seen)
    body = {**clone.body, "KmsKeyId": "k"}
    renamed = rename_clone(clone, "other-rs-0123456789", body)
    assert renamed.content_hash == content_hash(body) != clone.content_hash
    assert renamed.name == f"other-rs-{renamed.content_hash[:10]}"
    assert renamed.body == {**body, "EndpointConfigName": renamed.name}
    assert renamed.notes == clone.notes


METRICS_OFF = {"EnableEnhancedMetrics": False, "EnableDetailedObservability": False}


@pytest.mark.parametrize(
    ("one", "other", "is_same"),
    [
        ({"KmsKeyId": "k"}, {"KmsKeyId": "k", "EndpointConfigName": "x", "Tags": [], "CreationTime": 1}, True),
        ({"VpcConfig": {"a": 1, "b": 2}}, {"VpcConfig": {"b": 2, "a": 1}}, True),
        ({"KmsKeyId": "k"}, {"KmsKeyId": "k", "VpcConfig": None}, True),
        ({"KmsKeyId": "k"}, {"KmsKeyId": "k", "MetricsConfig": METRICS_OFF}, True),
        ({"KmsKeyId": "k"}, {"KmsKeyId": "k", "MetricsConfig": {}}, True),
        ({"KmsKeyId": "k"}, {"KmsKeyId": "k", "MetricsConfig": {**METRICS_OFF, "EnableEnhancedMetrics": True}}, False),
        ({"KmsKeyId": "k"}, {"KmsKeyId": "l"}, False),
        ({"KmsKeyId": "k"}, {}, False),
        (
            {"VpcConfig": {"at": datetime(2026, 1, 1, tzinfo=UTC)}},
            {"VpcConfig": {"at": datetime(2026, 1, 2, tzinfo=UTC)}},
            False,
        ),
    ],
)
def test_the_hash_is_of_what_a_configuration_says(one: dict[str, Any], other: dict[str, Any], is_same: bool) -> None:
    assert (content_hash(one) == content_hash(other)) is is_same


def test_the_counts_that_a_configuration_names_are_read_with_the_defaults_of_aws() -> None:
    seen = source({"InitialInstanceCount": 3, "InitialVariantWeight": 0.5})
    bare = {"VariantName": "B", "InstancePools": OWN_POOLS}
    body = {"ProductionVariants": [*seen.body["ProductionVariants"], bare]}
    counts = written_counts(ConfigSight("cfg", body, seen.created_at))
    assert counts == (VariantCount("AllTraffic", "ml.g5.4xlarge", 3, 0.5), VariantCount("B", "", 0, 1.0))
    assert written_counts(ConfigSight("cfg", {}, seen.created_at)) == ()
