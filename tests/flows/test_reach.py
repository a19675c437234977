"""A proposal that cannot be approved carries what its owner has to do, into the report too."""

from dataclasses import replace
from typing import Any, cast

import pytest

from rightsizer import catalog
from rightsizer.catalog import catalogue
from rightsizer.dimensions import DIMENSIONS
from rightsizer.domain.endpoint import EndpointKind, Mode, ScalableTarget
from rightsizer.domain.option import OptionKind, Target
from rightsizer.flows.evaluate import Evaluated, RecommendationSink, permission_for
from rightsizer.ports.evaluation import RecommendationStore
from rightsizer.recommender.proposal import ChangePermission, permission_for_endpoint
from tests import samples
from tests.recommender.test_proposal import ENDPOINT

CATALOGUE = catalogue(catalog.instances(), catalog.accelerators())
KEEPING = RecommendationSink(
    cast("RecommendationStore", None), lambda e: permission_for_endpoint(e, writes=True, untagged=False), 14
)


def enabled(**changes: Any) -> str:
    found = permission_for(
        KEEPING, CATALOGUE, DIMENSIONS, Evaluated(replace(ENDPOINT, **changes), samples.recommendation())
    )
    assert not found.approvable
    return found.enable


def test_an_untagged_endpoint_gets_the_tag_command() -> None:
    text = enabled(mode=Mode.PROPOSE, mode_declared=False)
    assert text.splitlines()[-1].startswith(
        "aws sagemaker add-tags --region eu-west-1 --resource-arn arn:aws:sagemaker:"
    )


def test_a_stack_owned_endpoint_gets_the_difference_and_no_command_that_would_drift() -> None:
    text = enabled(owned_by="CloudFormation stack web")
    assert "+ InstanceType: " in text
    assert "add-tags" not in text


POLICIES = ScalableTarget(
    "endpoint/chat-7b/variant/AllTraffic",
    "sagemaker:variant:DesiredInstanceCount",
    8,
    40,
    policies=({"PolicyName": "p", "PolicyType": "TargetTrackingScaling"},),
)


def reached(scaling: ScalableTarget, target: Target, kind: OptionKind = OptionKind.INSTANCE_COUNT) -> ChangePermission:
    option = replace(samples.option(), kind=kind, target=target)
    judged = Evaluated(replace(ENDPOINT, scaling=(scaling,)), samples.recommendation(options=(option,)))
    return permission_for(KEEPING, CATALOGUE, DIMENSIONS, judged)


def test_a_count_that_the_owners_policies_would_undo_has_no_button_and_says_what_lowers_it() -> None:
    found = reached(POLICIES, Target("ml.g5.xlarge", 5))
    assert not found.approvable
    assert not found.tag
    assert "its owner can lower the minimum of its scalable target to 5, from 8" in found.enable
    assert found.enable.splitlines()[-1] == (
        "aws application-autoscaling register-scalable-target --region eu-west-1 --service-namespace sagemaker"
        " --resource-id endpoint/chat-7b/variant/AllTraffic"
        " --scalable-dimension sagemaker:variant:DesiredInstanceCount --min-capacity 5"
    )


def test_a_count_above_their_minimum_is_left_to_the_policies() -> None:
    found = reached(POLICIES, Target("ml.g5.xlarge", 9))
    assert (found.approvable, "register-scalable-target" in found.enable) == (False, False)
    assert "8 to 40" in found.enable


@pytest.mark.parametrize(
    ("scaling", "target", "kind"),
    [
        (replace(POLICIES, policies=()), Target("ml.g5.xlarge", 5), OptionKind.INSTANCE_COUNT),
        (POLICIES, Target("ml.g5.xlarge", 5, minimum=5, maximum=40), OptionKind.AUTOSCALING),
        (POLICIES, Target("ml.g5.xlarge", 5), OptionKind.INSTANCE_TYPE),
        (
            replace(POLICIES, resource_id="endpoint/chat-7b/variant/b"),
            Target("ml.g5.xlarge", 5),
            OptionKind.INSTANCE_COUNT,
        ),
    ],
    ids=["no policy", "bounds", "type", "another variant"],
)
def test_what_no_policy_undoes_can_be_approved(scaling: ScalableTarget, target: Target, kind: OptionKind) -> None:
    assert reached(scaling, target, kind).approvable


OURS, THEIRS = (f"arn:aws:kms:eu-west-1:{account}:key/k" for account in ("111122223333", "999988887777"))


def of(kind: OptionKind = OptionKind.INSTANCE_TYPE, to: str = "ml.g5.xlarge", **changes: Any) -> ChangePermission:
    option = replace(samples.option(), kind=kind, target=Target(to, 1))
    at = replace(ENDPOINT, **changes)
    return permission_for(KEEPING, CATALOGUE, DIMENSIONS, Evaluated(at, samples.recommendation(options=(option,))))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"kms_key": OURS}, "ml.g5.xlarge has local NVMe storage that the key does not encrypt"),
        ({"kms_key": THEIRS, "to": "ml.p3.2xlarge"}, "a KMS key of account 999988887777"),
        ({"unknown_fields": ("ProductionVariants.0.NewThing",)}, "NewThing"),
        ({"configuration_replaced": True}, "was created anew after it was deployed"),
        ({"scaling": (replace(POLICIES, policies=({"PolicyName": "p", "PolicyType": "Predictive"},)),)}, "Predictive"),
        (
            {"scaling": (replace(POLICIES, scheduled=({"ScheduledActionName": "n", "Schedule": "cron(L W)"},)),)},
            "which is not understood",
        ),
    ],
)
def test_what_preflight_would_refuse_has_no_button_and_says_why(changes: dict[str, Any], said: str) -> None:
    found = of(**changes)
    assert not found.approvable
    assert "preflight would refuse it" in found.enable
    assert said in found.enable


def test_a_key_that_a_change_can_carry_and_counts_alone_keep_their_button() -> None:
    assert of(kms_key=OURS, to="ml.p3.2xlarge").approvable
    assert of(OptionKind.INSTANCE_COUNT, "ml.g5.2xlarge", kms_key=OURS).approvable


@pytest.mark.parametrize("declared", [True, False])
def test_a_deletion_that_no_wait_can_prove_has_no_button_and_says_why(declared: bool) -> None:
    judged = samples.recommendation(options=(samples.option(kind=OptionKind.DELETE),))

    def permitted(*kinds: EndpointKind) -> ChangePermission:
        at = replace(ENDPOINT, kind=kinds[0], kinds=kinds, mode_declared=declared)
        return permission_for(KEEPING, CATALOGUE, DIMENSIONS, Evaluated(at, judged))

    found = permitted(EndpointKind.ASYNC)
    assert permitted(EndpointKind.MULTI_VARIANT, EndpointKind.ASYNC) == found
    assert (found.approvable, found.tag) == (False, False)
    assert found.enable == (
        "whether an endpoint of kind asynchronous is used cannot be told by its invocations; its owner decides"
    )
    assert permitted(EndpointKind.REAL_TIME).approvable is declared, "of a real-time endpoint it can"
