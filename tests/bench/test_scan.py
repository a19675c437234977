"""The count of a scan's calls: it runs on a small account, and says when the second scan makes too many."""

from collections import Counter

import pytest

from bench.scan import main, over


def test_the_second_scan_of_a_small_account_is_within_the_budget(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--endpoints", "6"]) == 0
    assert "sagemaker:DescribeEndpointConfig                              6        0" in capsys.readouterr().out


def test_more_than_a_tenth_is_told() -> None:
    first = Counter({"sagemaker:DescribeEndpoint": 1000})
    assert over(first, Counter({"sagemaker:DescribeEndpoint": 130})) == []
    assert over(first, Counter({"sagemaker:DescribeEndpoint": 131})) == ["second scan: 131 calls, above 130"]
