"""The count of a scan's calls: it runs on a small account, and says when the second scan makes too many."""

from collections import Counter

import pytest

from bench.scan import main, over


def test_the_second_scan_of_a_small_account_is_within_the_budget(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--endpoints", "6"]) == 0
    assert "sagemaker:DescribeEndpointConfig                              6        0" in capsys.readouterr().out


@pytest.mark.parametrize(("endpoints", "allowed"), [(999, 130), (1000, 100)])
def test_more_than_a_tenth_is_told_and_a_thousand_endpoints_get_nothing_on_top(endpoints: int, allowed: int) -> None:
    first = Counter({"sagemaker:DescribeEndpoint": 1000})
    assert over(first, Counter({"sagemaker:DescribeEndpoint": allowed}), endpoints) == []
    more = Counter({"sagemaker:DescribeEndpoint": allowed + 1})
    assert over(first, more, endpoints) == [f"second scan: {allowed + 1} calls, above {allowed}"]
