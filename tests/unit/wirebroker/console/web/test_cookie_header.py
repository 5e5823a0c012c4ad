"""The session's cookie among cookies of other programs."""

from __future__ import annotations

import pytest

from wirebroker.console.web.viewer_check import cookie_of

NAME = "wirebroker-console-8989"
VALUE = "JUwbRANX591nLE8nV4m2waK04Bb85otsMXvY7NsKdyc"


@pytest.mark.parametrize(
    "others",
    ["", 'prefs={"theme":"dark"}; ', "foo; ", "é=1; ", "x=a b; ", ";;", "=; ", f"{NAME}2=y;\t"],
)
def test_cookies_of_any_form_do_not_hide_the_sessions(others):
    assert cookie_of(f"{others}{NAME}={VALUE}", NAME) == VALUE
    assert cookie_of(f"a=b; {NAME}={VALUE}; {others}", NAME) == VALUE


@pytest.mark.parametrize(
    "header", ["", NAME, f"{NAME}=", f"{NAME}=x", f"x{NAME}={VALUE}", f"{NAME}={VALUE * 2}"]
)
def test_other_values_are_no_session(header):
    assert cookie_of(header, NAME) is None
