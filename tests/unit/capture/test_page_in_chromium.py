"""The page in a real browser: by keyboard, offline, quick with 10,000 messages."""

import pytest

from pyspark_kafkaproto.capture.page import Page
from pyspark_kafkaproto.capture.selection import Selection
from tests.unit.capture.chromium import chromium
from tests.unit.capture.talks import fetch_request, fetch_response
from tests.unit.capture.wire import Talk, read

pytestmark = pytest.mark.long

MESSAGES = 10_000
PATIENCE_MS = 3000  # loaded in 0.4 s, filtered in 10 ms while others used the two cores


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    folder = tmp_path_factory.mktemp("page")
    talk = Talk().open()
    for number in range(1, MESSAGES // 2 + 1):
        error_code = 6 if number == 4000 else 0
        talk.say(0, fetch_request(number, offset=number, topic=f"topic-{number % 7}"))
        talk.say(1, fetch_response(number, error_code=error_code, topic=f"topic-{number % 7}"))
    page = Page("ten thousand messages")
    for message in read(talk.pcap())[0]:
        page.add(*Selection().choose(message))
    path = folder / "report.html"
    path.write_text(page.html(), encoding="utf-8")
    with chromium(folder / "profile") as opened:
        opened.open(path)
        yield opened


def text(browser, element):
    return browser.ask(f'document.getElementById("{element}").textContent')


def test_it_opens_quickly_and_draws_only_what_is_seen(browser):
    assert text(browser, "count") == f"{MESSAGES} of {MESSAGES} messages"
    assert 5 < browser.ask('document.querySelectorAll(".row").length') < 100
    timing = "performance.getEntriesByType('navigation')[0]"
    assert browser.ask(f"{timing}.domComplete - {timing}.responseEnd") < PATIENCE_MS


def test_it_is_used_by_keyboard(browser):
    browser.press("Home")
    browser.press("ArrowDown")
    assert text(browser, "what").startswith("Fetch v11 response")
    browser.press("r")  # to its request and back
    assert text(browser, "what").startswith("Fetch v11 request")
    browser.press("r")
    browser.press("Enter")
    assert browser.ask("document.activeElement.id") == "tree"
    browser.press("ArrowDown")
    assert browser.ask('document.querySelector("#tree .on").textContent').strip() == (
        "correlation_id 1"
    )
    marked = browser.ask(
        '[...document.querySelectorAll("#hex b")].map(b => b.textContent).join("")'
    )
    assert marked.startswith("00000001")
    browser.press("Escape")
    assert browser.ask("document.activeElement.id") == "left"
    browser.press("End")
    assert f"#{MESSAGES // 2}" in browser.ask('document.querySelector(".row.on").textContent')


def test_filters_are_quick(browser):
    browser.ask('document.getElementById("errs").click()')
    assert text(browser, "count") == f"1 of {MESSAGES} messages"
    assert "NOT_LEADER_OR_FOLLOWER" in text(browser, "what")
    browser.ask('document.getElementById("errs").click()')
    took = browser.ask(
        "(() => { const t = performance.now(); $('topic').value = 'topic-3'; filter();"
        " return performance.now() - t })()"
    )
    assert took < PATIENCE_MS
    assert text(browser, "count") != f"{MESSAGES} of {MESSAGES} messages"
