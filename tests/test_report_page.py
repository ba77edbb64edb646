"""The page of a report in a real browser that has no network: Chromium, headless, by Selenium."""

import json
import os
import shutil
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import Select

from kassign_spark.display import printable
from kassign_spark.report.collect import PageContents
from kassign_spark.report.findings import findings
from kassign_spark.report.render import MARK, render
from tests.made_reports import HOSTILE, made_by_weight, made_contents, made_past

_MAX_BYTES = 8_000_000
_BROWSER, _DRIVER = shutil.which("chromium"), shutil.which("chromedriver")


_BOXES = """
return [...arguments[0].querySelectorAll("rect")].map(
  box => [box.getAttribute("class"), getComputedStyle(box).fill]);
"""
"""The class and the colour of each box of a drawing, in one question: there are six hundred."""
_LINES = """
return [...arguments[0].querySelectorAll("text")].map(line => line.getBoundingClientRect());
"""
"""Where each line of a drawing's text is."""


def _page(contents: PageContents) -> str:
    return render(
        contents, findings(contents), plan="build/plan", snapshot="build/fleet", details=200
    )


@pytest.fixture(scope="module")
def browser(own_processes: None) -> Iterator[webdriver.Chrome]:
    if _BROWSER is None or _DRIVER is None:
        missing = pytest.fail if os.environ.get("CI") else pytest.skip
        missing("chromium and chromedriver are not installed: make browser installs them")
    options = webdriver.ChromeOptions()
    options.binary_location = _BROWSER
    for argument in (
        *("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"),
        *("--window-size=1280,2000", "--host-resolver-rules=MAP * ~NOTFOUND"),
    ):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options, webdriver.ChromeService(_DRIVER))
    driver.set_page_load_timeout(120)
    driver.set_script_timeout(120)
    yield driver
    driver.quit()


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("report") / "report.html"
    file.write_text(_page(made_contents(120, details=50)), encoding="utf-8")
    return file


def _open(browser: webdriver.Chrome, file: Path) -> None:
    browser.get(file.as_uri())


def _names(browser: webdriver.Chrome) -> list[str]:
    return [each.text for each in browser.find_elements(By.CSS_SELECTOR, "tr.group th")]


def _text(browser: webdriver.Chrome, selector: str) -> str:
    return browser.find_element(By.CSS_SELECTOR, selector).text


def _requests(browser: webdriver.Chrome) -> list[str]:
    """Addresses that the page asked for."""
    messages = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    sent = [m["params"] for m in messages if m["method"] == "Network.requestWillBeSent"]
    return [each["request"]["url"] for each in sent]


def _assert_quiet(browser: webdriver.Chrome) -> None:
    entries: list[dict[str, Any]] = browser.get_log("browser")
    assert entries == []


def test_it_renders_without_network_or_error(browser: webdriver.Chrome, small: Path) -> None:
    _open(browser, small)
    assert _text(browser, "h1") == "Partition assignment plan"
    assert len(_names(browser)) == 50
    assert _text(browser, "#group-count") == "120 groups"
    assert len(browser.find_elements(By.CSS_SELECTOR, "figure svg")) == 4
    heads = browser.find_elements(By.CSS_SELECTOR, "thead th")
    assert {head.get_attribute("scope") for head in heads} == {"col"}
    assert [url for url in _requests(browser) if not url.startswith(("file:", "data:"))] == []
    _assert_quiet(browser)


def test_names_are_text(browser: webdriver.Chrome, small: Path) -> None:
    _open(browser, small)
    assert _names(browser)[: len(HOSTILE)] == [printable(name) for name in HOSTILE]
    for place in range(len(HOSTILE)):
        browser.find_element(By.CSS_SELECTOR, f'tr.group[data-group="{place}"] button').click()
    assert len(browser.find_elements(By.CSS_SELECTOR, "tr.details")) == len(HOSTILE)
    assert browser.find_elements(By.CSS_SELECTOR, "main img, main b[onmouseover]") == []
    assert browser.execute_script("return document.scripts.length") == 2
    _assert_quiet(browser)


def test_search_filters_and_order(browser: webdriver.Chrome, small: Path) -> None:
    _open(browser, small)
    search = browser.find_element(By.ID, "group-search")
    search.send_keys("TEAM-7 service-7.")
    assert _names(browser) == ["team-7.service-7.events-v2"]
    assert _text(browser, "#group-count") == "1 of 120 groups"
    search.clear()
    search.send_keys("no such group")
    assert _names(browser) == []
    assert _text(browser, "#group-table tbody") == "No group fits."
    search.clear()
    search.send_keys("team")
    Select(browser.find_element(By.ID, "group-assignor")).select_by_visible_text("range")
    result = browser.find_elements(By.CSS_SELECTOR, "tr.group td:nth-child(2)")
    assert {each.text for each in result} == {"range"}
    Select(browser.find_element(By.ID, "group-only")).select_by_value("uneven")
    badges = browser.find_elements(By.CSS_SELECTOR, "tr.group td:last-child")
    assert badges
    assert all("uneven" in each.text for each in badges)
    _open(browser, small)
    browser.find_element(By.XPATH, "//table[@id='group-table']//button[.='Spread']").click()
    column = [e.text for e in browser.find_elements(By.CSS_SELECTOR, "tr.group td:nth-child(7)")]
    assert [int(text) for text in column] == sorted(map(int, column), reverse=True)
    head = browser.find_element(By.CSS_SELECTOR, "#group-table th[aria-sort]")
    assert head.get_attribute("aria-sort") == "descending"
    browser.find_element(By.CSS_SELECTOR, ".findings button").click()
    only = Select(browser.find_element(By.ID, "group-only"))
    assert only.first_selected_option.get_attribute("value") == "uneven"
    _assert_quiet(browser)


def test_pages_turn(browser: webdriver.Chrome, small: Path) -> None:
    _open(browser, small)
    first = _names(browser)
    for expected in ("page 2 of 3", "page 3 of 3"):
        browser.find_element(By.XPATH, "//div[@id='group-pager']/button[.='Next']").click()
        assert expected in _text(browser, "#group-pager")
    last = _names(browser)
    assert len(last) == 20
    assert not set(first) & set(last)
    # Of this group the page has no members and moves; it says so.
    browser.find_element(By.CSS_SELECTOR, "tr.group button").click()
    assert "--details N keeps more" in _text(browser, "tr.details")
    _assert_quiet(browser)


def test_a_group_opens_and_closes(browser: webdriver.Chrome, small: Path) -> None:
    _open(browser, small)
    button = 'tr.group[data-group="7"] button'
    browser.find_element(By.CSS_SELECTOR, button).click()
    assert browser.find_element(By.CSS_SELECTOR, button).get_attribute("aria-expanded") == "true"
    result = made_contents(120, details=50).details[7]
    tables = browser.find_elements(By.CSS_SELECTOR, "tr.details table")
    assert len(tables) == 5 + bool(result["problems"])
    members, moves = (table.find_elements(By.XPATH, "./tbody/tr") for table in tables[-2:])
    assert len(members) == len(result["members"])
    name, before, after, _ = result["members"][0]
    assert members[0].text.split("\n")[0].split(" ") == [name, str(before), str(after)]
    assert len(moves) == len(result["moves"])
    assert "orders[0-3]" in moves[0].text
    browser.find_element(By.CSS_SELECTOR, button).click()
    assert browser.find_elements(By.CSS_SELECTOR, "tr.details") == []
    _assert_quiet(browser)


def test_why_a_group_is_uneven(browser: webdriver.Chrome, small: Path) -> None:
    """A sentence, a table, and a drawing of a hundred kinds of members that can be read."""
    _open(browser, small)
    browser.find_element(By.CSS_SELECTOR, 'tr.group[data-group="7"] button').click()
    result = made_contents(120, details=50).details[7]["why"]
    assert _text(browser, ".why p") == f"{result['reason']}."
    rows = browser.find_elements(By.CSS_SELECTOR, ".advice tbody tr")
    assert rows[0].text.split()[:5] == ["as", "it", "is", *map(str, result["before"])]
    assert (
        rows[1].text == "let </script><img src=x onerror=alert(2)> read orders as well 11 1 27 42 1"
    )
    drawing = browser.find_element(By.CSS_SELECTOR, ".drawing svg")
    boxes = browser.execute_script(_BOXES, drawing)
    digits = [
        (kind, k) for kind in result["rows"] for k, digit in enumerate(kind[3]) if digit > "0"
    ]
    assert len(boxes) == len(digits)
    dense = [kind[2] and result["classes"][k][3] for kind, k in digits]
    assert [of_class == "dense" for of_class, _ in boxes] == list(map(bool, dense))
    assert len({colour for _, colour in boxes}) == 2
    # Each of a hundred lines is as high as its letters, inside the drawing, and below the last.
    lines = browser.execute_script(_LINES, drawing)[len(result["classes"]) :]
    assert len(lines) == len(result["rows"]) == 100
    assert min(b["y"] - a["y"] for a, b in pairwise(lines)) > 10
    left = browser.execute_script("return arguments[0].getBoundingClientRect().x", drawing)
    assert min(line["x"] for line in lines) >= left
    assert min(line["height"] for line in lines) >= 9
    assert "20 more kinds of members not drawn." in _text(browser, ".drawing")
    even = next(i for i, d in enumerate(made_contents(120, details=50).details) if d["why"] is None)
    browser.find_element(By.CSS_SELECTOR, f'tr.group[data-group="{even}"] button').click()
    assert len(browser.find_elements(By.CSS_SELECTOR, ".drawing")) == 1
    paragraphs = [each.text for each in browser.find_elements(By.CSS_SELECTOR, ".why p")]
    assert sum("kassign-spark advise says why" in text for text in paragraphs) == 1
    _assert_quiet(browser)


def test_problems_are_searched(browser: webdriver.Chrome, small: Path) -> None:
    _open(browser, small)
    assert _text(browser, "#problem-count") == "40 problems"
    browser.find_element(By.ID, "problem-search").send_keys("service-9.")
    assert _text(browser, "#problem-count") == "1 of 40 problems"
    browser.find_element(By.ID, "problem-search").clear()
    kind = browser.find_element(By.ID, "problem-kind")
    Select(kind).select_by_visible_text("owner_not_in_group")
    kinds = browser.find_elements(By.CSS_SELECTOR, "#problem-table tbody td:nth-child(2)")
    assert {each.text for each in kinds} == {"owner_not_in_group"}
    _assert_quiet(browser)


def test_it_prints(browser: webdriver.Chrome, small: Path) -> None:
    """On paper the worst groups are open, and more rows are there; then all is as before."""
    _open(browser, small)
    browser.execute_script("window.dispatchEvent(new Event('beforeprint'))")
    assert len(_names(browser)) == 100
    assert len(browser.find_elements(By.CSS_SELECTOR, "tr.details")) == 5
    browser.execute_script("window.dispatchEvent(new Event('afterprint'))")
    assert len(_names(browser)) == 50
    assert browser.find_elements(By.CSS_SELECTOR, "tr.details") == []
    assert len(browser.print_page()) > 20_000
    _assert_quiet(browser)


def test_loads_by_weight(browser: webdriver.Chrome, tmp_path: Path) -> None:
    """Steps down to a floor for some groups, and all loads in a table; names are text there too."""
    result = made_contents(8)
    weights = made_by_weight()
    page = render(
        result, [], plan="build/plan", snapshot="build/fleet", details=8, by_weight=weights
    )
    file = tmp_path / "report.html"
    file.write_text(page, encoding="utf-8")
    _open(browser, file)
    part = browser.find_element(By.ID, "weights")
    assert "15 groups have weights" in part.text
    assert "3 more groups" in part.text
    rows = part.find_elements(By.CSS_SELECTOR, "#weight-table tbody th")
    # A table on the page shows a no-break of spaces as one, as everywhere.
    assert [row.text for row in rows] == [group["name"] for group in weights.groups]
    loads, curves = part.find_elements(By.CSS_SELECTOR, "figure svg")
    assert loads.text.count("times") == 0
    drawn = curves.get_attribute("outerHTML") or ""
    assert drawn.count("no plan is below 1.20 times the fair load") == len(weights.curves)
    assert drawn.count("the knee") == len(weights.curves) - 1
    titles = browser.find_elements(By.CSS_SELECTOR, "nav a")
    assert "Weights" in [title.text for title in titles]
    assert browser.find_elements(By.CSS_SELECTOR, "main img, main b[onmouseover]") == []
    _assert_quiet(browser)
    assert 'id="weights"' not in _page(result)


def test_what_was(browser: webdriver.Chrome, tmp_path: Path) -> None:
    """Rebalances a day, a line of time a group, and all in a table; names are text there too."""
    past = made_past()
    page = render(
        made_contents(8), [], plan="p", snapshot="s", details=8, past=("build/<b>history", past)
    )
    file = tmp_path / "report.html"
    file.write_text(page, encoding="utf-8")
    _open(browser, file)
    part = browser.find_element(By.ID, "past")
    assert "14 groups of build/<b>history rebalanced 234 times, 1 storm" in part.text
    assert "2 more groups" in part.text
    rows = part.find_elements(By.CSS_SELECTOR, "#past-table tbody th")
    assert [row.text for row in rows] == [group["name"] for group in past.groups]
    days, timelines = part.find_elements(By.CSS_SELECTOR, "figure svg")
    drawn = days.get_attribute("outerHTML") or ""
    assert drawn.count("2026-11-09: 9 times a member left") == 1
    drawn = timelines.get_attribute("outerHTML") or ""
    assert drawn.count("a member was silent longer than its session timeout; 2 partitions") == 12
    assert drawn.count("not read for 0.5 s") == 36
    assert browser.find_elements(By.CSS_SELECTOR, "main img, main b[onmouseover]") == []
    _assert_quiet(browser)
    assert 'id="past"' not in _page(made_contents(8))


def test_ten_thousand_groups(browser: webdriver.Chrome, tmp_path: Path) -> None:
    page = _page(made_contents(10_000))
    assert len(page.encode()) < _MAX_BYTES
    file = tmp_path / "report.html"
    file.write_text(page, encoding="utf-8")
    _open(browser, file)
    assert _text(browser, "#group-count") == "10,000 groups"
    rows = browser.execute_script("return document.querySelectorAll('tr').length")
    assert rows < 200
    browser.find_element(By.ID, "group-search").send_keys("service-9999.")
    assert _names(browser) == ["team-8.service-9999.events-v2"]
    _assert_quiet(browser)


def test_a_page_is_known_to_be_ours() -> None:
    page = _page(made_contents(3))
    assert MARK in page[:4096]
    assert page == _page(made_contents(3))
