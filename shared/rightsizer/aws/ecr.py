"""Digests behind image tags today: ECR BatchGetImage, in the stack's own Region.

The registry of another account answers where its owner lets it (repository policy), as those of AWS's own images do.
UpdateEndpoint resolves tags again (DescribeEndpoint: DeployedImages), so a tag that moved would deploy other code.
A tag may name an index of several platforms; the digest of the index and those in it are then all the same image.
Source: ECR API reference, BatchGetImage; OCI image index (``manifests[].digest``).
"""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from botocore.exceptions import BotoCoreError, ClientError

from rightsizer.aws.errors import code_of, is_transient, text_of
from rightsizer.domain.endpoint import EndpointRef
from rightsizer.domain.live_state import ImageSight

IMAGE = re.compile(
    r"(?P<account>\d{12})\.dkr\.ecr(?:-fips)?\.(?P<region>[a-z0-9-]+)\.amazonaws\.com(?:\.cn)?/"
    r"(?P<repository>[a-z0-9._/-]+)(?::(?P<tag>\w[\w.-]*))?(?:@(?P<digest>sha256:[0-9a-f]{64}))?"
)
MANIFESTS = (
    "application/vnd.docker.distribution.manifest.v2+json",
    "application/vnd.docker.distribution.manifest.list.v2+json",
    "application/vnd.oci.image.manifest.v1+json",
    "application/vnd.oci.image.index.v1+json",
)
"""What is accepted as the answer; an index that is not accepted would be answered by one of its images."""
ABSENT = frozenset({"ImageNotFound", "ImageTagDoesNotMatchDigest", "RepositoryNotFoundException"})


class RegistryClient(Protocol):
    """The one call that is made of ECR."""

    def batch_get_image(self, **params: Any) -> Mapping[str, Any]:
        """BatchGetImage."""
        ...


def images(ecr: RegistryClient, ref: EndpointRef, names: Sequence[str]) -> Mapping[str, ImageSight]:
    """By name of an image, with a tag or a digest: what it means today. Total: what cannot be read says why."""
    return {name: _image(ecr, ref, name) for name in dict.fromkeys(names)}


def _image(ecr: RegistryClient, ref: EndpointRef, name: str) -> ImageSight:
    parts = IMAGE.fullmatch(name)
    if parts is None:
        return ImageSight(name, problem="its registry is not Amazon ECR")
    if parts["region"] != ref.region:
        return ImageSight(name, problem=f"its registry belongs to account {parts['account']} in {parts['region']}")
    theirs = "" if parts["account"] == ref.account else f" by the registry of account {parts['account']}"
    wanted = {"imageDigest": parts["digest"]} if parts["digest"] else {"imageTag": parts["tag"] or "latest"}
    try:
        answer = ecr.batch_get_image(
            registryId=parts["account"],
            repositoryName=parts["repository"],
            imageIds=[wanted],
            acceptedMediaTypes=list(MANIFESTS),
        )
    except ClientError as error:
        if code_of(error) in ABSENT and not theirs:  # another account may hide a repository that it does not share
            return ImageSight(name, gone=True)
        text = f"ecr:BatchGetImage was refused{theirs} ({code_of(error)}: {text_of(error)})"
        return ImageSight(name, problem=text, passing=is_transient(error))
    except BotoCoreError as error:
        return ImageSight(name, problem=f"ecr:BatchGetImage had no answer ({error})", passing=is_transient(error))
    digests = tuple(d for found in answer.get("images") or () for d in _digests(found))
    codes = {failure.get("failureCode", "") for failure in answer.get("failures") or ()}
    if not digests and codes and codes <= ABSENT:
        return ImageSight(name, gone=True)
    return ImageSight(name, digests, problem="" if digests else f"ecr:BatchGetImage answered {sorted(codes)}")


def _digests(found: Mapping[str, Any]) -> list[str]:
    """The digest of what the tag names, then those of the images in it where it is an index."""
    digests = [(found.get("imageId") or {}).get("imageDigest")]
    try:
        manifest = json.loads(found.get("imageManifest") or "{}")
        digests += [one.get("digest") for one in manifest.get("manifests") or ()]
    except (ValueError, AttributeError):
        pass  # a manifest that cannot be read holds no more digests; the first one stands
    return [digest for digest in digests if isinstance(digest, str) and digest]
