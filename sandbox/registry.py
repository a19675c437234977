"""The images of the account: ECR's BatchGetImage, on what the fleet would resolve a tag to now.

A repository that no model of the account names does not exist, and a tag can be taken away or made an index of several
platforms. Source: ECR API reference, BatchGetImage (failures with ImageNotFound; RepositoryNotFoundException).
"""

import hashlib
import json
from typing import TYPE_CHECKING, Any

from sandbox.refusals import AwsRefusal
from sandbox.strict import on

if TYPE_CHECKING:
    from sandbox.world import World


class Registry:
    """What the tags of images mean."""

    def __init__(self, world: "World") -> None:
        self._world = world
        self.removed: set[str] = set()
        """Images whose tag was taken away."""
        self.indexes: set[str] = set()
        """Images whose tag names an index; what runs is one of the images in it."""

    def BatchGetImage(self, p: dict[str, Any]) -> dict[str, Any]:
        """The manifest of each tag; failures for tags that are not there."""
        host = f"{p.get('registryId') or self._world.account}.dkr.ecr.{self._world.region}.amazonaws.com"
        repository = f"{host}/{p['repositoryName']}"
        if repository not in {name.partition("@")[0].rsplit(":", 1)[0] for name in self._known()} and on(
            "BatchGetImage", "repository"
        ):
            text = f"The repository with name '{p['repositoryName']}' does not exist in the registry"
            raise AwsRefusal("RepositoryNotFoundException", text)
        found, failures = [], []
        for wanted in p["imageIds"]:
            tag, digest = wanted.get("imageTag"), wanted.get("imageDigest")
            name = f"{repository}@{digest}" if tag is None else f"{repository}:{tag}"
            if name in self.removed or name not in self._known():
                failures.append({"imageId": wanted, "failureCode": "ImageNotFound"})
            else:
                found.append({"repositoryName": p["repositoryName"], **self._manifest(name, wanted)})
        return {"images": found, "failures": failures}

    def _manifest(self, name: str, wanted: dict[str, Any]) -> dict[str, Any]:
        runs = self._world.fleet.resolved(name)["ResolvedImage"].partition("@")[2]
        if name not in self.indexes:
            return {"imageId": {**wanted, "imageDigest": runs}, "imageManifest": json.dumps({"schemaVersion": 2})}
        whole = f"sha256:{hashlib.sha256(runs.encode()).hexdigest()}"
        manifest = json.dumps({"schemaVersion": 2, "manifests": [{"digest": runs}]})
        return {"imageId": {**wanted, "imageDigest": whole}, "imageManifest": manifest}

    def _known(self) -> set[str]:
        models = [m.request for m in self._world.fleet.models.values()]
        rows = [row for m in models for row in (*(m.get("Containers") or ()), m.get("PrimaryContainer") or {})]
        for component in self._world.components.known.values():
            parts = component.specification.get("Specifications") or [component.specification]
            rows += [part.get("Container") or {} for part in parts]
        return {row["Image"] for row in rows if row.get("Image")}
