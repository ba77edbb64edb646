"""What a report says of groups that could go over to the new protocol, without a browser."""

import re

from kassign_spark.report.findings import findings
from kassign_spark.report.render import render
from tests.made_reports import HOSTILE, made_contents


def test_verdicts_are_on_the_page_and_harmless() -> None:
    groups = [
        {"name": HOSTILE[0], "verdict": "blocked", "way": None, "detail": HOSTILE[1]},
        {"name": "plain", "verdict": "ready", "way": "online", "detail": None},
    ]
    counts = {"ready": 1, "risky": 0, "blocked": 1, "groups": groups, "not_listed": 3}
    result = made_contents(3, details=1)._replace(migrations=counts)
    page = render(result, findings(result), plan="p", snapshot="s", details=1)
    (section,) = re.findall(r'<section id="protocol".*?</section>', page, re.DOTALL)
    assert "<script>" not in section
    assert "&lt;script&gt;alert(1)" in section
    assert re.search(r"<td>blocked</td><td>not yet</td>", section)
    assert re.search(r'<th scope="row">plain</th><td>ready</td><td>online</td><td></td>', section)
    assert "3 more are not listed" in section
    assert 'href="#protocol"' in page
    without = made_contents(3, details=1)
    page = render(without, findings(without), plan="p", snapshot="s", details=1)
    assert 'id="protocol"' not in page
