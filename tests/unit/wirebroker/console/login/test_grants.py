from __future__ import annotations

import pytest

from wirebroker.console.changes.change import ConsoleRole
from wirebroker.console.login.grants import grants_of


@pytest.mark.parametrize(
    ("text", "prod", "test"),
    [
        ("admin", ConsoleRole.ADMIN, ConsoleRole.ADMIN),
        ("reader, admin@test", ConsoleRole.READER, ConsoleRole.ADMIN),
        ("admin,reader@prod", ConsoleRole.READER, ConsoleRole.ADMIN),
        ("operator@test", None, ConsoleRole.OPERATOR),
    ],
)
def test_roles_hold_for_all_clusters_or_for_one(text, prod, test):
    grants = grants_of(text)
    assert (grants.role_in("prod"), grants.role_in("test")) == (prod, test)
    assert grants_of(grants.text()) == grants


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "is not ROLE"),
        ("root", "roles: reader, operator, admin"),
        ("Admin", "is not ROLE"),
        ("admin@", "is not ROLE"),
        ("admin,", "is not ROLE"),
        ("admin,reader", "two roles for all clusters"),
        ("admin@a,reader@a", "two roles for a"),
        (",".join(["reader@a"] * 2000), "more than 1000"),
    ],
)
def test_other_roles_are_refused(text, reason):
    with pytest.raises(ValueError, match=reason):
        grants_of(text)
