"""A page in a browser: nothing is wider than the screen, nothing is loaded, nothing violates the policy of the page."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

import kraftlog
from golden_files import GOLDEN
from headless_chromium import PROGRAM, Page, page

pytestmark = pytest.mark.skipif(PROGRAM is None, reason="no Chromium (Debian: apt install chromium)")
NOW = "2026-11-24T00:00:00Z"
SCREENS = [(1280, 900), (390, 844)]
CONTRAST = """
(() => {
  const channel = c => (c /= 255) <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
  const parse = text => text.match(/[\\d.]+/g).map(Number);
  const light = ([r, g, b]) => 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
  const behind = node => {
    for (; node; node = node.parentElement) {
      const found = parse(getComputedStyle(node).backgroundColor);
      if (found.length === 3 || found[3] === 1) return found;
    }
    return [255, 255, 255];
  };
  let least = 21;
  for (const node of document.querySelectorAll("body *")) {
    if (![...node.childNodes].some(one => one.nodeType === 3 && one.data.trim())) continue;
    const [one, other] = [parse(getComputedStyle(node).color), behind(node)].map(light).sort((a, b) => b - a);
    least = Math.min(least, (one + 0.05) / (other + 0.05));
  }
  return least;
})()
"""
WIDER = """
[...document.querySelectorAll("body *")].filter(
  node => node.getBoundingClientRect().right > innerWidth + 1 && !node.closest(".scroll")
).map(node => node.outerHTML.slice(0, 200))
"""


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a log directory with something of everything, and with long names."""
    folder = tmp_path_factory.mktemp("logs")
    for source in ("transactions_live/log", "codecs/log", "compaction/log", "metadata/log"):
        for one in (GOLDEN / source).iterdir():
            if one.is_dir():
                shutil.copytree(one, folder / one.name)
    shutil.copytree(GOLDEN / "transactions_hanging" / "log" / "orders-late-0", folder / "orders-late-0")
    shutil.copytree(GOLDEN / "groups" / "log" / "__consumer_offsets-1", folder / "__consumer_offsets-1")
    for number, case in enumerate(("good", "bit_flip_payload", "batch_length_13", "truncated_in_last_records")):
        source = GOLDEN / "damaged" / case / "log" / "t-0"
        for name in ("payments", "a-topic-" + "with-a-very-long-name" * 10):
            shutil.copytree(source, folder / f"{name}-{number}")
    return folder


@pytest.fixture(scope="module")
def report(logs: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("page") / "report.html"
    kraftlog.report(logs, file, now=NOW)
    return file


@pytest.fixture(scope="module")
def browser() -> Iterator[Page]:
    with page() as found:
        yield found


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize(("width", "height"), SCREENS)
def test_on_a_screen(browser: Page, report: Path, width: int, height: int, scheme: str, tmp_path: Path):
    browser.open(report, width, height, scheme)
    assert browser.evaluate("innerWidth") == width
    assert browser.evaluate("document.documentElement.scrollWidth") <= width
    assert browser.evaluate(WIDER) == []
    assert set(browser.requests) == {report.as_uri()}
    assert browser.complaints == []
    assert browser.evaluate("document.styleSheets.length") == 1
    is_dark = browser.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(20, 23, 26)"
    assert is_dark == (scheme == "dark")
    assert browser.evaluate(CONTRAST) >= 4.5  # of text, as WCAG asks for
    browser.screenshot(tmp_path / "page.png")
    assert (tmp_path / "page.png").stat().st_size > 50_000


@pytest.mark.parametrize("where", ["short", "long"])
def test_what_is_damaged_is_seen(browser: Page, report: Path, where: str):
    """The red of a map stands where the damage is."""
    browser.open(report, 1280, 900, "light")
    name = "payments-2" if where == "short" else "very-long-name-2"
    found = browser.evaluate(
        f"""(() => {{
          const box = [...document.querySelectorAll("#damage .box")].find(one => one.innerText.includes("{name}/"));
          const [whole, bad] = ["path.s", "path.x"].map(one => box.querySelector(one).getBoundingClientRect());
          return [(bad.left - whole.left) / whole.width, (bad.right - whole.left) / whole.width];
        }})()"""
    )
    (fault,) = kraftlog.open(GOLDEN / "damaged" / "batch_length_13" / "log").verify()
    size = (GOLDEN / "damaged" / "batch_length_13" / "log" / "t-0" / f"{0:020d}.log").stat().st_size
    assert fault.position is not None
    assert found == pytest.approx([fault.position / size, 1], abs=0.01)


@pytest.mark.parametrize(("width", "height"), SCREENS)
def test_bars_of_transactions_have_one_scale(browser: Page, report: Path, width: int, height: int):
    browser.open(report, width, height, "light")
    lanes = "[...document.querySelectorAll('.lane svg, .lane .axis')]"
    ends = browser.evaluate(
        f"{lanes}.map(one => [one.getBoundingClientRect().left, one.getBoundingClientRect().right])"
    )
    assert len(ends) > 10
    assert {tuple(round(end) for end in pair) for pair in ends} == {tuple(round(end) for end in ends[0])}


def test_links_lead_somewhere(browser: Page, report: Path):
    browser.open(report, 1280, 900, "light")
    links = browser.evaluate("[...document.querySelectorAll('a')].map(one => one.getAttribute('href'))")
    assert len(links) > 4
    assert browser.evaluate("[...document.querySelectorAll('a')].every(one => document.querySelector(one.hash))")


def test_what_is_folded_can_be_unfolded_without_script(browser: Page, report: Path):
    browser.open(report, 1280, 900, "light")
    first = "document.querySelector('details.note')"
    assert browser.evaluate(f"{first}.open") is False
    browser.evaluate(f"{first}.querySelector('summary').click()")
    assert browser.evaluate(f"{first}.open") is True
    assert browser.evaluate("document.scripts.length") == 0
