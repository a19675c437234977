"""Pages of the simulated account for a browser: what its stack sent and stored."""

from collections.abc import Callable

from sandbox.wiring import Stack

type Page = Callable[[], str]
NONE_YET = "<!doctype html><title>no report</title><p>No report yet: one is made on Monday at 07:00 UTC."


def report_page(stack: Stack) -> str:
    """The newest report of the stack's bucket, or a line that says when there will be one."""
    box = stack.box
    with box.gate.unrecorded():
        s3, bucket = box.client("s3"), stack.function("report").environment["RIGHTSIZER_BUCKET"]
        keys = [one["Key"] for one in s3.list_objects_v2(Bucket=bucket, Prefix="reports/").get("Contents", [])]
        pages = sorted(key for key in keys if key.endswith(".html"))
        return s3.get_object(Bucket=bucket, Key=pages[-1])["Body"].read().decode() if pages else NONE_YET
