"""S3 and ECR. S3's codes: API reference, "Error responses"."""

from collections.abc import Mapping

from sandbox.strict import Check, Key, Params, moto, shape, state
from sandbox.strict.words import not_exactly_one, together

S3, ECR = "s3", "ecr"
_MANIFESTS = ("application/vnd.docker.distribution.manifest.", "application/vnd.oci.image.")


def _long_key(p: Params) -> bool:
    return len(str(p.get("Key", "")).encode()) > 1024


def _metadata(p: Params) -> bool:
    return sum(len(k.encode()) + len(v.encode()) for k, v in (p.get("Metadata") or {}).items()) > 2048


def _neither_tag_nor_digest(p: Params) -> bool:
    broken = not_exactly_one("imageTag", "imageDigest")
    return any(not one or broken(one) for one in p["imageIds"] if not ("imageTag" in one and "imageDigest" in one))


_KEY = Check("key", "a key of more than 1,024 bytes", "KeyTooLongError", _long_key, source="S3 guide, object keys")
_BUCKET = moto("bucket", "a bucket that does not exist", "NoSuchBucket")

CHECKS: Mapping[Key, tuple[Check, ...]] = {
    (S3, "PutObject"): (
        shape(S3, "a storage class or encryption outside its enum"),
        _KEY,
        Check(
            "metadata", "more than 2 KB of metadata", "MetadataTooLarge", _metadata, source="S3 guide, object metadata"
        ),
        Check(
            "none match",
            "IfNoneMatch other than `*`",
            "NotImplemented",
            lambda p: p.get("IfNoneMatch", "*") != "*",
            source="S3 guide, conditional writes",
        ),
        Check("both", "IfMatch with IfNoneMatch", "NotImplemented", together("IfMatch", "IfNoneMatch")),
        moto("condition", "a condition that does not hold", "PreconditionFailed"),
        _BUCKET,
    ),
    (S3, "GetObject"): (
        shape(S3, "an empty key"),
        _KEY,
        Check("ranges", "several ranges", "InvalidArgument", lambda p: "," in p.get("Range", "")),
        Check("part", "a part with a range", "InvalidRequest", together("PartNumber", "Range")),
        moto("unknown", "a key that does not exist", "NoSuchKey"),
        _BUCKET,
    ),
    (S3, "ListObjectsV2"): (
        shape(S3, "an encoding other than url"),
        Check("keys", "a negative number of keys", "InvalidArgument", lambda p: int(p.get("MaxKeys", 1)) < 0),
        _BUCKET,
    ),
    (ECR, "BatchGetImage"): (
        shape(ECR, "none or more than 100 images, a repository's name outside its pattern"),
        Check("ids", "an image with neither tag nor digest", "InvalidParameterException", _neither_tag_nor_digest),
        Check(
            "media",
            "a media type that is no manifest",
            "InvalidParameterException",
            lambda p: any(not m.startswith(_MANIFESTS) for m in p.get("acceptedMediaTypes") or []),
        ),
        state("repository", "a repository that does not exist", "RepositoryNotFoundException"),
    ),
}
