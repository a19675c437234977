"""Opening a signed link to S3, as a browser would: what a bucket that was made today refuses is refused.

Sources: S3 API reference, "Authenticating requests: using query parameters (Signature Version 4)"; S3 user guide,
"Signature Version 2 turned off for new buckets" (made after 24 June 2020) and "Virtual hosting of buckets" (the global
host answers for a bucket of another Region with a redirect, for which the signature was not made); S3 user guide,
"Sharing objects with presigned URLs" (a link that temporary credentials signed ends with them, whatever its own end);
S3 API reference, "Error responses" (ExpiredToken, InvalidToken).
"""

import hashlib
import hmac
import os
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import parse_qsl, quote, unquote, urlsplit

from sandbox.account import Sandbox
from sandbox.policies import Ask
from sandbox.role import Role

LONGEST_S = 7 * 24 * 3600
STAMP = "%Y%m%dT%H%M%SZ"


class LinkRefusedError(Exception):
    """What S3 shows instead of the page. `code` is S3's own."""

    def __init__(self, status: int, code: str, text: str) -> None:
        self.status, self.code = status, code
        super().__init__(f"{status} {code}: {text}")


def opened(box: Sandbox, url: str, signer: Role, session_ends: datetime | None = None) -> bytes:
    """The page behind the link; `signer` is the role whose permission counts. LinkRefusedError as S3 refuses.

    Links are signed and judged by the machine's time, as moto keeps it for S3. `session_ends` is when the credentials
    that signed it end; None: later than anything that is looked at.
    """
    parts = urlsplit(url)
    given = dict(parse_qsl(parts.query, keep_blank_values=True))
    if "AWSAccessKeyId" in given:
        raise LinkRefusedError(
            400, "InvalidRequest", "The authorization mechanism you have provided is not supported. Please use "
            "AWS4-HMAC-SHA256."
        )  # fmt: skip
    bucket = _bucket(box, parts.netloc)
    key = unquote(parts.path.removeprefix("/"))
    _in_time(given)
    _in_session(given, session_ends)
    if not hmac.compare_digest(_signature(box, parts, given), given.get("X-Amz-Signature", "")):
        raise LinkRefusedError(403, "SignatureDoesNotMatch", "The request signature we calculated does not match")
    if not signer.allows(Ask("s3:GetObject", f"arn:aws:s3:::{bucket}/{key}")):
        raise LinkRefusedError(403, "AccessDenied", "Access Denied")
    with box.gate.unrecorded():
        s3 = box.client("s3")
        try:
            found: bytes = s3.get_object(Bucket=bucket, Key=key)["Body"].read()
        except s3.exceptions.NoSuchKey as error:
            raise LinkRefusedError(404, "NoSuchKey", key) from error
    return found


def _bucket(box: Sandbox, host: str) -> str:
    regional = f".s3.{box.region}.amazonaws.com"
    if host.endswith(regional):
        return host.removesuffix(regional)
    raise LinkRefusedError(307, "TemporaryRedirect", f"{host} is no host of a bucket in {box.region}")


def _in_time(given: dict[str, str]) -> None:
    try:
        lasts = int(given["X-Amz-Expires"])
        begins = datetime.strptime(given["X-Amz-Date"], STAMP).replace(tzinfo=UTC)
    except (KeyError, ValueError):
        raise LinkRefusedError(
            400, "AuthorizationQueryParametersError", "X-Amz-Date or X-Amz-Expires is wrong"
        ) from None
    if not 0 < lasts <= LONGEST_S:
        raise LinkRefusedError(400, "AuthorizationQueryParametersError", "X-Amz-Expires must be less than a week")
    if datetime.now(UTC) > begins + timedelta(seconds=lasts):
        raise LinkRefusedError(403, "AccessDenied", "Request has expired")


def _in_session(given: dict[str, str], ends: datetime | None) -> None:
    """A role signs with the token of its session, and what it signed ends with the session."""
    if given.get("X-Amz-Security-Token", "") != os.environ.get("AWS_SESSION_TOKEN", ""):
        raise LinkRefusedError(400, "InvalidToken", "The provided token is malformed or otherwise invalid.")
    if ends is not None and datetime.now(UTC) > ends:
        raise LinkRefusedError(400, "ExpiredToken", "The provided token has expired.")


def _signature(box: Sandbox, parts: Any, given: dict[str, str]) -> str:
    """Signature Version 4 of a GET with these parameters, worked out by the published rule and not by botocore."""
    day = given["X-Amz-Date"][:8]
    scope = f"{day}/{box.region}/s3/aws4_request"
    named = sorted((quote(k, safe="-_.~"), quote(v, safe="-_.~")) for k, v in given.items() if k != "X-Amz-Signature")
    query = "&".join(f"{key}={value}" for key, value in named)
    request = f"GET\n{parts.path}\n{query}\nhost:{parts.netloc}\n\nhost\nUNSIGNED-PAYLOAD"
    digest = hashlib.sha256(request.encode()).hexdigest()
    text = f"AWS4-HMAC-SHA256\n{given['X-Amz-Date']}\n{scope}\n{digest}"
    key = f"AWS4{os.environ['AWS_SECRET_ACCESS_KEY']}".encode()
    for part in (day, box.region, "s3", "aws4_request"):
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    return hmac.new(key, text.encode(), hashlib.sha256).hexdigest()
