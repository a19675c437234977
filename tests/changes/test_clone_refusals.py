"""Why a configuration is not cloned: each reason with its code, the field or the hardware, and what AWS would need."""

from datetime import UTC, datetime
from typing import Any

import pytest

from rightsizer import catalog
from rightsizer.catalog import catalogue
from rightsizer.changes.clone import Wanted, clone_refusals, key_refusals, nvme_key_refusals, unknown_fields
from rightsizer.domain.live_state import ConfigSight
from rightsizer.domain.option import ScaleIn, Target
from rightsizer.domain.plan import VariantCount
from rightsizer.domain.reason import Code

CATALOGUE = catalogue(catalog.instances(), catalog.accelerators())
OWN, OTHER = "111122223333", "444455556666"
ARN = f"arn:aws:sagemaker:eu-west-1:{OWN}:endpoint-config/cfg"
ENABLED = {"ManagedInstanceScaling": {"Status": "ENABLED"}}


def key_of(account: str) -> str:
    return f"arn:aws:kms:eu-west-1:{account}:key/0"


def config(*specs: dict[str, Any], **fields: Any) -> ConfigSight:
    """A configuration of ml.g5.4xlarge; each spec is a variant."""
    usual = {"VariantName": "A", "ModelName": "m", "InstanceType": "ml.g5.4xlarge", "InitialInstanceCount": 2}
    variants = [{**usual, **spec} for spec in specs or ({},)]
    body = {"EndpointConfigArn": ARN, "ProductionVariants": variants, **fields}
    return ConfigSight("cfg", body, datetime(2026, 1, 1, tzinfo=UTC))


def refusals(source: ConfigSight, *types: str, target: Target | None = None) -> list[tuple[Code, str]]:
    """Code and sentence of each reason why the variants A, B ... do not become these types."""
    wanted = tuple(VariantCount("ABC"[i], kind, 1, 1.0) for i, kind in enumerate(types or ("ml.g5.xlarge",)))
    found = clone_refusals(source, Wanted(wanted, target or Target("", 0), "A"), CATALOGUE)
    return [(reason.code, reason.sentence) for reason in found]


def test_a_plain_configuration_is_not_refused() -> None:
    assert refusals(config()) == []


@pytest.mark.parametrize("value", [None, [], {}, ""])
def test_an_empty_field_refuses_nothing(value: Any) -> None:
    assert refusals(config({"New": value, "ServerlessConfig": value, "AcceleratorType": "eia1"}, New=value)) == []


@pytest.mark.parametrize(
    ("field", "why"),
    [
        ("ServerlessConfig", "it is serverless"),
        ("CapacityReservationConfig", "its instance type is tied to a capacity reservation"),
    ],
)
def test_a_variant_that_is_tied_to_its_size_is_named_with_what_ties_it(field: str, why: str) -> None:
    sentence = f"variant A cannot be cloned to another size: {why}"
    assert refusals(config({field: {"x": 1}})) == [(Code.OTHER_KIND, sentence)]


def test_unknown_fields_are_listed_with_their_place_each_once_and_in_order() -> None:
    seen = config({"New": 1, "Also": False}, Zoo=0, Own={"x": 1})
    hidden = ConfigSight(seen.name, seen.body, seen.created_at, ("Own", "Hidden"))
    fields = "Hidden, Own, ProductionVariants.A.Also, ProductionVariants.A.New, Zoo"
    sentence = f"configuration cfg has fields that this program does not know: {fields}"
    assert refusals(hidden) == [(Code.UNKNOWN_FIELD, sentence)]
    assert unknown_fields("cfg", fields.split(", ")).sentence == sentence


def test_a_variant_without_a_name_is_a_question_mark() -> None:
    seen = config({"VariantName": "", "ServerlessConfig": {"x": 1}})
    del seen.body["ProductionVariants"][0]["VariantName"]
    assert refusals(seen)[0][1].startswith("variant ? cannot be cloned")


@pytest.mark.parametrize("types", [("ml.g5.xlarge", "ml.g5.xlarge"), ()])
def test_other_variants_than_the_change_was_made_for_end_the_questions(types: tuple[str, ...]) -> None:
    sentence = "configuration cfg has other variants than the change was made for"
    seen = config({"VariantName": "X"}, KmsKeyId=key_of(OTHER), New=1)
    assert refusals(seen, *types)[1:] == [(Code.CHANGED_SINCE, sentence)]
    assert refusals(seen, *types)[0][0] is Code.UNKNOWN_FIELD


def test_a_configuration_without_variants_has_other_ones() -> None:
    assert [code for code, _ in refusals(config(ProductionVariants=None))] == [Code.CHANGED_SINCE]


ANOTHER_ACCOUNT = (
    f"configuration cfg encrypts with a KMS key of account {OTHER}; creating another one like it "
    f"needs kms:CreateGrant there, and rightsizer holds it for keys of account {OWN} only"
)


def test_a_key_of_another_account_is_refused_with_both_accounts() -> None:
    seen = config({"InstanceType": "ml.c7i.2xlarge"}, KmsKeyId=key_of(OTHER))
    assert refusals(seen, "ml.c7i.xlarge") == [(Code.PERMISSION_MISSING, ANOTHER_ACCOUNT)]
    (reason,) = key_refusals("cfg", key_of(OTHER), OWN)
    assert (reason.code, reason.sentence) == (Code.PERMISSION_MISSING, ANOTHER_ACCOUNT)


@pytest.mark.parametrize("key", [key_of(OWN), "0", "alias/mine", "arn:aws:kms:eu-west-1:1", "a:b:c:d:5:f", None])
def test_a_key_of_the_own_account_or_of_none_is_not_refused(key: str | None) -> None:
    assert refusals(config({"InstanceType": "ml.c7i.2xlarge"}, KmsKeyId=key), "ml.c7i.xlarge") == []


@pytest.mark.parametrize("arn", ["", "cfg", None])
def test_without_an_account_of_its_own_no_key_is_refused(arn: str | None) -> None:
    seen = config({"InstanceType": "ml.c7i.2xlarge"}, KmsKeyId=key_of(OTHER), EndpointConfigArn=arn)
    assert refusals(seen, "ml.c7i.xlarge") == []
    assert key_refusals("cfg", key_of(OTHER), "") == ()


def test_an_arn_of_six_parts_names_its_account() -> None:
    assert key_refusals("cfg", f"arn:aws:kms:eu-west-1:{OTHER}:", OWN)
    assert key_refusals("cfg", f"arn:aws:kms:eu-west-1:{OTHER}", OWN) == ()


NVME = (
    "the configuration encrypts its volume with a KMS key, and ml.g5.xlarge has local NVMe storage "
    "that the key does not encrypt"
)


def test_a_key_is_not_taken_to_local_nvme() -> None:
    assert refusals(config(KmsKeyId=key_of(OWN))) == [(Code.KMS_ON_NVME, NVME)]
    hardware = CATALOGUE.find("ml.g5.xlarge")
    assert [(r.code, r.sentence) for r in nvme_key_refusals("k", hardware)] == [(Code.KMS_ON_NVME, NVME)]
    assert nvme_key_refusals("", hardware) == nvme_key_refusals("k", None) == ()
    assert nvme_key_refusals("k", CATALOGUE.find("ml.c7i.xlarge")) == ()


NO_SCALING = (
    "variant B of configuration cfg has no managed instance scaling that is enabled, "
    "and a scale-in policy is a part of it"
)


@pytest.mark.parametrize("scaling", [None, {}, {"Status": "DISABLED"}])
def test_a_scale_in_policy_needs_managed_scaling_that_is_enabled(scaling: dict[str, str] | None) -> None:
    seen = config(ENABLED, {"VariantName": "B", "ManagedInstanceScaling": scaling})
    target = Target("", 0, scale_in=ScaleIn("B", "IDLE_RELEASE"))
    same = ("ml.g5.4xlarge", "ml.g5.4xlarge")
    assert refusals(seen, *same, target=target) == [(Code.NOT_APPLICABLE, NO_SCALING)]


def test_a_scale_in_policy_asks_only_the_scaling_of_its_own_variant() -> None:
    seen = config({}, {"VariantName": "B", **ENABLED})
    target = Target("", 0, scale_in=ScaleIn("B", "IDLE_RELEASE"))
    assert refusals(seen, "ml.g5.4xlarge", "ml.g5.4xlarge", target=target) == []


def test_a_type_that_the_catalogue_does_not_know_is_never_a_target() -> None:
    sentence = "ml.new.xlarge is not in the catalogue, so it is never a target"
    assert refusals(config(), "ml.new.xlarge") == [(Code.NO_SPECIFICATION, sentence)]


def test_a_type_that_stays_need_not_be_known() -> None:
    assert refusals(config({"InstanceType": "ml.new.xlarge"}), "ml.new.xlarge") == []


@pytest.mark.parametrize("old", ["ml.old.xlarge", None])
def test_nothing_is_compared_with_a_type_that_nobody_knows_or_that_pools_replace(old: str | None) -> None:
    seen = config({"InstanceType": "x", "InstancePools": [{"InstanceType": "ml.g5.xlarge"}]})
    if old is None:
        del seen.body["ProductionVariants"][0]["InstanceType"]
    assert refusals(seen, "ml.c7g.xlarge") == []


def test_each_variant_and_each_pool_is_compared() -> None:
    """The first one stays in both, and the questions go on."""
    vendor = "ml.inf2.xlarge has accelerators of AWS, ml.g5.4xlarge of NVIDIA; the model must be rebuilt"
    both = config({}, {"VariantName": "B"})
    assert refusals(both, "ml.g5.4xlarge", "ml.inf2.xlarge") == [(Code.ANOTHER_VENDOR, vendor)]
    pools = Target("", 1, pools=("ml.g5.4xlarge", "ml.inf2.xlarge"))
    assert refusals(config(), target=pools) == [(Code.ANOTHER_VENDOR, vendor)]
    assert refusals(both, "ml.g5.4xlarge", "ml.g5.4xlarge", target=pools) == [(Code.ANOTHER_VENDOR, vendor)], "A alone"


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("ml.g5.xlarge", "ml.c7i.xlarge", "ml.c7i.xlarge has accelerators of none, ml.g5.xlarge of NVIDIA"),
        ("ml.c7i.xlarge", "ml.g5.xlarge", "ml.g5.xlarge has accelerators of NVIDIA, ml.c7i.xlarge of none"),
    ],
)
def test_hardware_without_an_accelerator_differs_from_one_with(old: str, new: str, sentence: str) -> None:
    found = refusals(config({"InstanceType": old}), new)
    assert found == [(Code.ANOTHER_VENDOR, f"{sentence}; the model must be rebuilt")]


def test_another_architecture_is_named_with_both() -> None:
    found = refusals(config({"InstanceType": "ml.c7i.xlarge"}), "ml.c7g.xlarge")
    sentence = "ml.c7g.xlarge is arm64 and ml.c7i.xlarge is x86_64; the image may not run"
    assert found == [(Code.ANOTHER_ARCHITECTURE, sentence)]
