"""The journey of analysts and curators in Chromium, with what screen readers and keyboards need.

With DISCREET_SCREENSHOTS set to a directory, screenshots of the pages are kept there.
"""

import os
import re
import shutil
import threading
import time
from pathlib import Path

import pytest
import uvicorn
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect, sync_playwright

from discreet.datasets._demo import PUBLIC as BOUNDS
from discreet.releases.average import Release
from discreet.serve import demo
from discreet.serve.app import create_app
from tests.serve.conftest import quick

N = 2_000


class Walk:
    """A page with a person before it: clicks are counted, and what goes wrong is remembered."""

    def __init__(self, page, address):
        self.page, self.address, self.clicks, self.checked, self.problems = page, address, 0, 0, []
        page.on("console", lambda message: self.problems.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: self.problems.append(str(error)))

    def go(self, path):
        self.page.goto(self.address + path)

    def click(self, words, exact=False):
        self.clicks += 1
        where = self.page.get_by_role("button", name=words, exact=exact)
        where = where.or_(self.page.get_by_role("link", name=words, exact=exact))
        where.first.click()

    def sign_in(self, token):
        self.go("/")
        self.page.get_by_label("Your access token").fill(token)
        self.click("Sign in")
        self.page.wait_for_url("**/datasets")

    def check(self, name):
        """No serious barrier, nothing that is cut off, and a screenshot for those who want one."""
        found = Axe().run(self.page)
        serious = [each for each in found.response["violations"] if each["impact"] in ("serious", "critical")]
        problems = [(each["id"], [node["html"][:120] for node in each["nodes"]][:3]) for each in serious]
        assert not problems, (name, problems)
        wide = self.page.evaluate("document.scrollingElement.scrollWidth - document.scrollingElement.clientWidth")
        assert wide <= 0, f"{name} is {wide} pixels too wide"
        self.checked += 1
        folder = os.environ.get("DISCREET_SCREENSHOTS")
        if folder and not name.startswith("phone-"):
            self.page.evaluate("window.scrollTo(0, 0)")
            self.page.screenshot(path=str(Path(folder) / f"{name}.png"))


@pytest.fixture(scope="module")
def browser():
    found = next(
        (path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None
    )
    if found is None:
        pytest.skip("there is no Chromium, and it could not be installed: install Debian's package chromium")
    with sync_playwright() as playwright:
        made = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        yield made
        made.close()


@pytest.fixture(scope="module")
def running(tmp_path_factory):
    folder = tmp_path_factory.mktemp("browser")
    settings = quick(f"sqlite:///{folder}/service.db", folder, first_tick=0.5)
    tokens = demo.prepare(settings, n=N)
    server = uvicorn.Server(uvicorn.Config(create_app(settings), port=0, log_level="warning"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.05)
    port = server.servers[0].sockets[0].getsockname()[1]
    yield f"http://127.0.0.1:{port}", tokens
    server.should_exit = True
    thread.join(20)


@pytest.fixture
def walk(browser, running, record_property):
    """A way to sit down before a screen of some size."""
    contexts, walks = [], []

    def begin(person, **screen):
        context = browser.new_context(**({"viewport": {"width": 1100, "height": 760}} | screen))
        context.set_default_timeout(30_000)
        contexts.append(context)
        made = Walk(context.new_page(), running[0])
        made.sign_in(running[1][person])
        walks.append(made)
        return made

    yield begin
    record_property("pages", sum(each.checked for each in walks))
    for context in contexts:
        context.close()


def registers(w, name, title):
    """The steps of the wizard, every view of it checked; clicks and choices from lists are counted alike."""
    page = w.page

    def choose(where, words):
        w.clicks += 1
        page.locator(where).select_option(label=words)

    w.click("Register a data set")
    w.check("register-source")
    w.clicks += 1
    page.get_by_label("clinic.parquet").check()
    w.click("Continue")
    choose("#outcome", "days (number)")
    choose("#treatment", "treated (number)")
    w.check("register-columns")
    w.click("Continue")
    choose("#y-template", "days, 0 to 40")
    choose("#c-0-template", "age of adults, 18 to 110 years")
    choose("#c-1-template", "score, 0 to 20")
    for where, text in (("#y-label", "days in hospital"), ("#t-label", "early mobilisation")):
        page.locator(where).fill(text)
    for where, text in (("#c-2-levels", "f, m"), ("#c-3-levels", "north, east, south, west")):
        page.locator(where).fill(text)
    w.check("register-bounds")
    w.click("Continue")
    page.get_by_label("Title").fill(title)
    page.get_by_label("Short name").fill(name)
    w.check("register-budget")
    w.click("Continue")
    page.get_by_text("Made-up rows").first.wait_for()
    w.check("register-preview")
    w.click("Check the records and send for approval")
    page.wait_for_url(re.compile(r"/curator(/datasets/[a-z-]+)?$"))


def approve(w):
    """Whatever waits is approved."""
    w.go("/curator")
    buttons = w.page.get_by_role("button", name="Approve")
    while left := buttons.count():
        for known in w.page.get_by_label("I know that these records are registered already").all():
            known.check()
        w.click("Approve")
        expect(buttons).to_have_count(left - 1, timeout=30_000)
    w.page.get_by_text("Nothing waits").wait_for()


def test_a_data_set_is_registered_in_twelve_clicks_without_reading_anything(walk, record_property):
    w = walk("curator", color_scheme="dark")
    w.go("/curator")
    w.clicks = 0
    registers(w, "by-steps", "Registered by steps")
    record_property("registration-clicks", w.clicks)
    assert w.clicks <= 12
    # Taken back, so that it does not wait beside what another test proposes of the same records.
    w.click("Take it back")
    w.page.get_by_text("Nothing waits").wait_for()
    assert w.problems == []


def test_a_newcomer_gets_from_login_to_a_downloaded_release_in_eight_clicks(walk, tmp_path, record_property):
    w = walk("analyst")
    w.check("data-sets")
    w.click("Plan a release of Days in hospital")
    w.page.get_by_label("Privacy budget ε", exact=True).fill("2")
    w.page.get_by_text("ε = 2:").wait_for()
    w.check("plan")
    w.click("Ask for this release")
    w.page.wait_for_url("**/request?**")
    w.check("request")
    w.click("Spend ε = 2 and release")
    w.page.wait_for_url("**/requests/*")
    w.check("progress")
    w.page.wait_for_url("**/releases/*")
    w.check("release")
    with w.page.expect_download() as download:
        w.click("Download JSON")
    download.value.save_as(tmp_path / "release.json")
    assert Release.load(tmp_path / "release.json").guarantee.epsilon == 2.0
    record_property("clicks", w.clicks)
    assert w.clicks <= 8
    with w.page.expect_download() as download:
        w.click("Download PNG")
    assert Path(download.value.path()).read_bytes()[:4] == b"\x89PNG"
    assert w.problems == []


def test_the_plan_answers_what_epsilon_an_interval_needs(walk):
    w = walk("analyst")
    w.go("/datasets/clinic-stays/plan")
    w.page.get_by_text("What ε do I need?").click()
    w.page.get_by_label("For an interval of ±").fill("1.6")
    w.click("Find ε")
    w.page.get_by_text(": ± 1.6").wait_for()
    found = float(w.page.get_by_label("Privacy budget ε", exact=True).input_value())
    assert 0.05 < found < 10
    w.page.get_by_label("What to estimate").select_option("uplift")
    w.page.get_by_label("severity", exact=True).select_option("4")
    w.page.get_by_text("one segment").wait_for()
    assert w.problems == []


def test_effects_can_be_explored_on_a_phone_in_the_dark(walk, tmp_path):
    w = walk("analyst", viewport={"width": 360, "height": 740}, color_scheme="dark")
    w.check("data-sets-phone")
    w.go("/datasets/clinic-stays/plan")
    w.check("plan-phone")
    w.go("/datasets/clinic-stays/request?kind=cate&epsilon=3&delta=1e-6")
    w.check("request-phone")
    w.click("Spend ε = 3 and release")
    w.page.wait_for_url("**/releases/*")
    w.check("release-phone")
    w.click("Explore the effects")
    w.page.get_by_text("95 % interval").first.wait_for()
    # The noise is real: a released function may be the same for everybody, so that the words need not change.
    with w.page.expect_response("**/explore") as answer:
        w.page.get_by_label("severity", exact=True).fill("1")
    assert "95 % interval" in answer.value.text()
    w.page.locator("#answer .estimate").wait_for()
    w.check("explore-phone")
    curve = w.page.locator("[data-plot]").first
    marked = curve.get_attribute("aria-valuetext")
    assert "effect" in marked
    curve.focus()
    w.page.keyboard.press("Home")
    first = curve.get_attribute("aria-valuetext")
    w.page.keyboard.press("ArrowRight")
    assert curve.get_attribute("aria-valuetext") != first
    assert curve.locator("xpath=..").locator("[data-readout]").inner_text() == curve.get_attribute("aria-valuetext")
    w.page.get_by_label("age at admission", exact=True).fill("140")
    w.page.get_by_text("lies outside of its declared range").wait_for()
    assert w.page.get_by_label("age at admission", exact=True).get_attribute("aria-invalid") == "true"
    w.check("explore-outside-phone")
    w.page.get_by_label("age at admission", exact=True).fill("40")
    w.page.get_by_text("lies outside of its declared range").wait_for(state="detached")
    people = tmp_path / "people.csv"
    people.write_text(f"{','.join(BOUNDS.names)}\n50,5,f,north\n70,9,m,east\n")
    w.page.get_by_label("A CSV file").set_input_files(people)
    with w.page.expect_download() as download:
        w.click("Effects as CSV")
    lines = Path(download.value.path()).read_text().splitlines()
    assert lines[0].endswith("effect,low,high,outside")
    assert len(lines) == 3
    w.page.set_viewport_size({"width": 1100, "height": 760})
    w.page.emulate_media(color_scheme="light")
    w.page.locator("[data-plot]").first.hover()
    w.check("explore")
    for name, path in (
        ("releases", "/releases"),
        ("requests", "/requests"),
        ("audit", "/audit"),
        ("interface", "/interface"),
        ("proofs", "/proofs"),
        ("proof", "/proofs/cate"),
        ("evidence", "/evidence/uplift"),
    ):
        w.go(path)
        w.check(name)
    w.go("/datasets/clinic-stays")
    w.check("data-set")
    assert w.problems == []


def test_two_curators_register_decide_freeze_and_verify(walk, running):
    first, second = walk("curator"), walk("second")
    first.go("/curator")
    first.check("curator")
    registers(first, "second-study", "A second study")
    approve(second)
    first.go("/curator/datasets/second-study")
    first.page.get_by_label("Analyst", exact=True).select_option("analyst")
    first.page.get_by_label("Up to ε").fill("1")
    first.click("Propose access")
    second.go("/curator")
    second.click("Approve")
    second.page.get_by_text("Nothing waits").wait_for()
    first.page.reload()
    first.page.get_by_text("Take access away").wait_for()
    first.page.get_by_label("New cap ε").fill("9")
    first.click("Change the cap")
    first.page.get_by_text("another curator has to approve it").wait_for()
    first.check("manage")
    second.go("/curator")
    second.check("approval")
    second.click("Approve")
    second.page.get_by_text("Nothing waits").wait_for()
    first.page.reload()
    first.page.get_by_label("Reason, for the log").fill("a question came up")
    first.click("Freeze: nothing new is released")
    first.page.get_by_role("button", name="Propose to lift the freeze").wait_for()
    first.check("frozen")
    first.go("/curator/people")
    first.page.get_by_label("Short name").fill("guest")
    first.page.get_by_label("Name", exact=True).fill("A guest")
    first.click("Add, with a token")
    first.page.get_by_text("it is shown this once").wait_for()
    assert first.page.locator("#made").inner_text().startswith("discreet_")
    first.go("/curator/people")
    first.check("people")
    first.go("/curator/log")
    first.click("Verify the log")
    first.page.get_by_text("Intact.").wait_for()
    first.check("log")
    second.page.set_viewport_size({"width": 360, "height": 740})
    for path in (
        "/curator",
        "/curator/datasets/second-study",
        "/curator/datasets/new",
        "/curator/register",
        "/curator/people",
        "/curator/log",
    ):
        second.go(path)
        second.check(f"phone{path.replace('/', '-')}")
    assert first.problems + second.problems == []


# What something that has the focus is called: by its label, by itself, or by its text.
_NAME = """(() => {
  const found = document.activeElement;
  return (found.labels && found.labels[0]?.innerText) || found.ariaLabel || found.innerText || "";
})()"""


def tab_to(page, words, most=60):
    """Move on with the Tab key until what has the focus is called so; it must be seen to have it."""
    for _ in range(most):
        page.keyboard.press("Tab")
        found = page.evaluate(_NAME)
        if found.startswith(words):
            assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") != "none"
            return
    raise AssertionError(f"{words} cannot be reached")


def test_a_keyboard_is_enough_from_the_list_of_data_sets_to_a_release_and_its_curves(walk, running):
    w = walk("colleague")
    page = w.page
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.innerText") == "Skip to the content"
    page.keyboard.press("Enter")
    tab_to(page, "Plan a release")
    page.keyboard.press("Enter")
    page.wait_for_url("**/plan")
    tab_to(page, "What to estimate")
    page.keyboard.type("Effect as")
    tab_to(page, "Privacy budget")
    page.keyboard.press("Control+A")
    page.keyboard.type("0.5")
    page.get_by_text("ε = 0.5:").wait_for()
    tab_to(page, "Expected interval")
    before = page.locator("#plan-plot").get_attribute("aria-valuetext")
    page.keyboard.press("ArrowLeft")
    assert page.locator("#plan-plot").get_attribute("aria-valuetext") != before
    tab_to(page, "Ask for this release")
    page.keyboard.press("Enter")
    page.wait_for_url("**/request?*")
    tab_to(page, "Spend")
    page.keyboard.press("Enter")
    page.wait_for_url("**/releases/*")
    tab_to(page, "Explore the effects")
    page.keyboard.press("Enter")
    page.wait_for_url("**/explore")
    tab_to(page, "severity")
    page.keyboard.press("Control+A")
    page.keyboard.type("2")
    page.locator("#answer .estimate").wait_for()
    tab_to(page, "Effect along")
    page.keyboard.press("End")
    assert page.evaluate("document.activeElement.getAttribute('aria-valuetext')")
    assert w.problems == []


def test_the_public_reads_what_a_curator_shows_and_colleagues_compare(walk, running, browser):
    w, c = walk("analyst"), walk("curator")
    names = []
    for epsilon in ("0.4", "0.6"):
        w.go(f"/datasets/home-trial/request?kind=difference-in-means&epsilon={epsilon}&delta=1e-6")
        w.click("Spend")
        w.page.wait_for_url("**/releases/*")
        names.append(w.page.url.rpartition("/")[2])
    w.go("/releases")
    for name in names:
        w.page.locator(f"input[value='{name}']").check()
    w.click("Compare those that are ticked")
    w.page.get_by_text("beside each other").first.wait_for()
    w.check("compare")
    w.page.set_viewport_size({"width": 360, "height": 740})
    w.check("compare-phone")
    c.go(f"/releases/{names[0]}")
    c.click("Show it to the public")
    link = c.page.locator("#public-link a").get_attribute("href")
    c.check("release-shown")
    page = browser.new_page(viewport={"width": 360, "height": 740}, color_scheme="dark")
    page.goto(running[0] + link)
    guest = Walk(page, running[0])
    guest.check("public-phone")
    assert page.get_by_text("Sign out").count() == 0
    c.click("Withdraw it from the public")
    page.goto(running[0] + link)
    page.get_by_text("Nothing is shown to the public").wait_for()
    page.close()
    assert w.problems + c.problems == []


def test_a_refused_token_says_what_to_do(browser, running):
    page = browser.new_page()
    page.goto(running[0])
    page.get_by_label("Your access token").fill("discreet_nonsense")
    page.get_by_role("button", name="Sign in").click()
    page.get_by_text("ask a curator for a new one").wait_for()
    made = Walk(page, running[0])
    made.check("sign-in")
    page.close()
