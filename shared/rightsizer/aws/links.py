"""A link to one page of the bucket, signed when somebody asks for it. Bare botocore: `respond` uses it.

Source: S3 API reference, "Authenticating requests: using query parameters (Signature Version 4)"; S3 user guide,
"Methods for accessing a bucket" (the host of the bucket's own Region, by virtual host).
"""

from datetime import timedelta
from typing import TYPE_CHECKING

from rightsizer.errors import ReadError

if TYPE_CHECKING:
    from rightsizer.aws.light import LightSession

LASTS = timedelta(minutes=15)
"""Long enough to click; a link that was passed on opens nothing the next day. Signature Version 4 allows a week."""


class PageLinks:
    """Signs links with the role of the function: a link opens what the role may read, and nothing else."""

    def __init__(self, session: "LightSession", bucket: str) -> None:
        self._session = session
        self._bucket = bucket

    def link(self, key: str) -> str:
        """The link to `key`, good for `LASTS` at most; no call to AWS: that the page exists is seen when it is opened.

        It ends with the session that signs it, where that is sooner. Lambda does not say when its role's session ends.
        """
        from botocore.auth import S3SigV4QueryAuth
        from botocore.awsrequest import AWSRequest
        from botocore.exceptions import NoCredentialsError

        request = AWSRequest("GET", _address(self._bucket, self._session.region, key))
        try:
            lasts = int(LASTS.total_seconds())
            S3SigV4QueryAuth(self._session.credentials(), "s3", self._session.region, lasts).add_auth(request)
        except NoCredentialsError as error:
            raise ReadError(f"signing a link to {key}: {error}; the function has no role") from None
        return str(request.url)


def _address(bucket: str, region: str, key: str) -> str:
    """Virtual host of the bucket in its Region; the path holds a name with dots, which no certificate covers."""
    from urllib.parse import quote

    host = f"s3.{region}.amazonaws.com" + (".cn" if region.startswith("cn-") else "")
    path = quote(key, safe="/-._~")
    return f"https://{host}/{bucket}/{path}" if "." in bucket else f"https://{bucket}.{host}/{path}"
