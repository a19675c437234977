"""One answer to who owns a thing, for the gate, the preflight, the components and the Spot groups."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rightsizer.changes.preflight import preflight_refusals
from rightsizer.domain.ownership import CONTROLLERS, SHORT_TOOLS, TOOLS, owner_of
from rightsizer.domain.reason import Code
from rightsizer.domain.tags import parse_tags
from tests.changes.test_preflight import preflight_input

CASES = [
    ({"aws:cloudformation:stack-name": "ml-prod"}, "CloudFormation stack ml-prod"),
    ({"aws:servicecatalog:provisionedProductArn": "arn:p"}, "Service Catalog product arn:p"),
    ({"aws:servicecatalog:provisioningArtifactIdentifier": "pa-1"}, "Service Catalog product pa-1"),
    ({"created-by": "terraform"}, "Terraform"),
    ({"ManagedBy": "Terraform"}, "Terraform"),
    ({"terraform": "true"}, "Terraform"),
    ({"terraform-workspace": "prod"}, "Terraform"),
    ({"managed-by": "crossplane"}, "Crossplane"),
    ({"managed-by": "terragrunt"}, "Terragrunt"),
    (
        {"services.k8s.aws/controller-version": "sagemaker-v1.2.13", "services.k8s.aws/namespace": "ml"},
        "ACK (Kubernetes)",
    ),
    ({"argocd.argoproj.io/instance": "models"}, "Argo CD"),
    ({"kustomize.toolkit.fluxcd.io/name": "models"}, "Flux"),
    ({"helm.toolkit.fluxcd.io/name": "models"}, "Flux"),
    ({"sst:app": "search", "sst:stage": "prod"}, "SST"),
    ({"provisioned-by": "ansible"}, "Ansible"),
    ({"app.kubernetes.io/managed-by": "Helm"}, "HELM"),
    ({"managed-by": "argo-rollouts"}, "ARGO"),
    ({"argo": "navis"}, ""),
    ({"managed_by": "Pulumi/prod"}, "Pulumi"),
    ({"iac": "opentofu"}, "Opentofu"),
    ({"provisioner": "cdk"}, "CDK"),
    ({"created_by": "aws-cdk"}, "CDK"),
    ({"managed-by": "ack"}, "ACK"),
    ({"terraform": "false"}, ""),
    ({"terraform": " "}, ""),
    ({"managed-by": "alice"}, ""),
    ({"managed-by": "feedback-team"}, ""),
    ({"stack": "search"}, ""),
    ({"rightsizer:owner": "terraform-guild"}, ""),
    ({}, ""),
]


@pytest.mark.parametrize(("tags", "owner"), CASES, ids=str)
def test_the_gate_and_the_preflight_see_the_same_owner(tags: dict[str, str], owner: str) -> None:
    assert owner_of(tags) == owner
    assert parse_tags(tags).owned_by == owner
    found = preflight_refusals(replace(preflight_input(), tags={"rightsizer:mode": "propose", **tags}))
    assert (Code.OWNED_BY_STACK in {reason.code for reason in found}) == bool(owner)


@given(st.dictionaries(st.text(max_size=20), st.text(max_size=20), max_size=5))
def test_any_tags_are_read_and_an_owner_is_found_only_by_name(tags: dict[str, str]) -> None:
    words = " ".join(f"{key}={value}" for key, value in tags.items()).lower()
    known = (*TOOLS, *SHORT_TOOLS, *(prefix for prefix, _ in CONTROLLERS), "servicecatalog")
    assert not owner_of(tags) or any(tool in words for tool in known)
