"""The steps of an action in a browser: open the form, fill it, see the plan, confirm it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from compat_tests.console.console_site import Screen
from tests.support.tools.waiting import eventually
from wirebroker.console.changes.change import FieldKind

if TYPE_CHECKING:
    from pathlib import Path

    from compat_tests.console.actions.action import BrowserAction
    from compat_tests.console.actions.action_sites import ClusterVisit

_SHOW = "Show what it does"
_POLL_S = 0.3
_WIDTHS = (1280, 360)
_HEIGHT = 800


class ActionSteps:
    """One action on a separate page of the browser; close it at the end."""

    def __init__(self, visit: ClusterVisit, action: BrowserAction, screenshots: Path) -> None:
        self._visit = visit
        self._action = action
        self._page = visit.context.new_page()
        self.screen = Screen(self._page, visit.address, screenshots)

    def close(self) -> None:
        self._page.close()

    def _open(self, path: str) -> None:
        self.screen.open(f"/c/{self._visit.cluster}/{path}")

    def open_form(self) -> None:
        """Follow the link to the form, once the console has read the content of the page."""
        boxes = [
            self._page.get_by_role("checkbox", name=name, exact=True)
            for name in self._action.checkboxes
        ]
        role: Literal["button", "link"] = "button" if boxes else "link"
        link = self._page.get_by_role(role, name=self._action.link, exact=True).first

        def is_shown() -> bool:
            self._open(self._action.page)
            return link.count() > 0 and all(box.count() == 1 for box in boxes)

        eventually(is_shown, poll_s=_POLL_S)
        # Chromium logs the 404 of a topic or group that the console has not read yet.
        self.screen.errors[:] = [text for text in self.screen.errors if "404" not in text]
        for box in boxes:
            box.press("Space")
        link.click()
        self._page.get_by_role("button", name=_SHOW).wait_for()

    def fill(self) -> None:
        kinds = {field.name: field.kind for field in self._action.change.fields}
        for name, value in self._action.values.items():
            if kinds[name] is FieldKind.YES_NO:
                self._page.locator(f"input[name={name}]").set_checked(value == "yes")
            elif kinds[name] is FieldKind.CHOICE:
                self._page.locator(f"#field-{name}").select_option(value)
            else:
                self._page.locator(f"#field-{name}").fill(value)

    def show_plan(self) -> str:
        """Show the plan; return its text, or the reason why there is no plan."""
        self._page.get_by_role("button", name=_SHOW).click()
        shown = self._page.locator("section.plan, section[role=alert]").first
        shown.wait_for()
        return self._page.locator("main").inner_text()

    @property
    def is_refused(self) -> bool:
        """Whether the form is shown again, with a reason."""
        return self._page.locator("section[role=alert]").count() > 0

    def command(self) -> str:
        return self._page.get_by_label("Command line").inner_text()

    def confirm(self) -> str:
        """Confirm the plan, wait for the end of the change, and return its result."""
        self._page.get_by_role("button", name=self._action.change.title, exact=True).click()
        results = self._page.locator("section[role=status], section[role=alert]")
        ended = results.filter(has_not_text="The change is being made").first
        ended.wait_for()
        return ended.inner_text()

    def check_look(self, part: str) -> None:
        """Check accessibility and the layout on a phone; write screenshots.

        Other tests check both themes: forms and plans have the same parts.
        """
        name = f"action-{self._action.kind}-{part}"
        page = self._page
        assert self.screen.accessibility_faults() == []
        for width in reversed(_WIDTHS):
            page.set_viewport_size({"width": width, "height": _HEIGHT})
            assert self.screen.overflow() == 0
            self.screen.shoot(f"{name}-{width}", is_whole=True)
