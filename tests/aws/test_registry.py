"""The registry's answers, as they come and as they should not."""

from collections.abc import Mapping
from typing import Any

import pytest
from botocore.exceptions import ClientError, ConnectTimeoutError

from rightsizer.aws.artefacts import images
from rightsizer.domain.endpoint import EndpointRef
from rightsizer.domain.live_state import ImageSight

REF = EndpointRef("111122223333", "eu-west-1", "chat")
NAME = "111122223333.dkr.ecr.eu-west-1.amazonaws.com/team/chat:prod"
DIGEST = "sha256:" + "b" * 64


class Answering:
    """A registry with one answer."""

    def __init__(self, answer: Mapping[str, Any] | Exception) -> None:
        self.answer, self.asked = answer, list[Mapping[str, Any]]()

    def batch_get_image(self, **params: Any) -> Mapping[str, Any]:
        self.asked.append(params)
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


def seen(answer: Mapping[str, Any] | Exception, name: str = NAME) -> ImageSight:
    return images(Answering(answer), REF, [name])[name]


def refused(code: str) -> ClientError:
    return ClientError({"Error": {"Code": code, "Message": "no"}}, "BatchGetImage")


def test_a_tag_and_a_digest_are_asked_for_once() -> None:
    registry = Answering({"images": [{"imageId": {"imageDigest": "sha256:aa"}}]})
    found = images(registry, REF, [NAME, NAME, NAME.replace(":prod", f"@{DIGEST}"), NAME.removesuffix(":prod")])
    assert [(one["repositoryName"], one["imageIds"]) for one in registry.asked] == [
        ("team/chat", [{"imageTag": "prod"}]),
        ("team/chat", [{"imageDigest": DIGEST}]),
        ("team/chat", [{"imageTag": "latest"}]),
    ]
    assert {sight.digests for sight in found.values()} == {("sha256:aa",)}


@pytest.mark.parametrize("manifest", ["", "not json", "[1]", '{"manifests": [{"digest": 7}]}', '{"manifests": null}'])
def test_an_odd_manifest_leaves_the_digest_of_the_tag(manifest: str) -> None:
    answer = {"images": [{"imageId": {"imageDigest": "sha256:aa"}, "imageManifest": manifest}]}
    assert seen(answer).digests == ("sha256:aa",)


@pytest.mark.parametrize(
    "answer",
    [
        refused("RepositoryNotFoundException"),
        {"images": [], "failures": [{"failureCode": "ImageNotFound"}]},
    ],
)
def test_what_is_not_there_is_gone(answer: Mapping[str, Any] | Exception) -> None:
    assert seen(answer) == ImageSight(NAME, gone=True)


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (refused("AccessDeniedException"), "AccessDeniedException"),
        (refused("ThrottlingException"), "ThrottlingException"),
        (ConnectTimeoutError(endpoint_url="https://api.ecr"), "had no answer"),
        ({}, "answered []"),
        ({"images": [], "failures": [{"failureCode": "UpstreamAccessDenied"}]}, "UpstreamAccessDenied"),
    ],
)
def test_what_cannot_be_read_says_why_and_is_neither_gone_nor_known(
    answer: Mapping[str, Any] | Exception, words: str
) -> None:
    found = seen(answer)
    assert (found.gone, found.digests) == (False, ())
    assert words in found.problem


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("docker.io/library/chat:prod", "not Amazon ECR"),
        ("host:5000/chat", "not Amazon ECR"),
        (NAME.replace("eu-west-1", "us-east-1"), "us-east-1"),
    ],
)
def test_another_registry_is_not_asked(name: str, words: str) -> None:
    registry = Answering({})
    assert words in images(registry, REF, [name])[name].problem
    assert registry.asked == []


FOREIGN = NAME.replace("111122223333", "763104351884")


def test_the_registry_of_another_account_is_asked_by_its_id() -> None:
    registry = Answering({"images": [{"imageId": {"imageDigest": "sha256:aa"}}]})
    assert images(registry, REF, [FOREIGN])[FOREIGN].digests == ("sha256:aa",)
    assert registry.asked[0]["registryId"] == "763104351884"


@pytest.mark.parametrize("code", ["AccessDeniedException", "RepositoryNotFoundException"])
def test_what_another_account_does_not_show_is_unknown_and_not_gone(code: str) -> None:
    found = seen(refused(code), FOREIGN)
    assert (found.gone, found.digests) == (False, ())
    assert f"refused by the registry of account 763104351884 ({code}" in found.problem
