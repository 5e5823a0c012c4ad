"""SCRAM users that are created, changed and deleted from the console."""

from __future__ import annotations

import pytest

from tests.support.console.changes import made, prepared
from tests.support.console.guarded_cluster import guarded_cluster
from wirebroker.client.security.acls import AccessRule, create_acls
from wirebroker.client.security.users import ScramUser, list_users
from wirebroker.console.changes.change import ChangeError

SECRET = "correct horse battery staple"


async def test_a_user_is_created_and_its_password_changed(tmp_path):
    async with guarded_cluster(tmp_path) as c:
        plan = await prepared(c, "set-user", name="anna", password=SECRET)
        assert plan.summary == "Create user anna for SCRAM-SHA-512"
        assert plan.lines == ("SCRAM-SHA-512: the first password",)
        assert await list_users(c.client) == []
        assert await plan.apply() == "user anna logs in by SCRAM-SHA-512"
        plan = await prepared(c, "set-user", name="anna", password="other", iterations=8192)
        assert plan.summary == "Change the password of user anna"
        assert plan.lines[1] == "iterations of its hash: 4096 → 8192"
        assert plan.warnings == ("clients with the old password cannot log in again",)
        await plan.apply()
        await made(c, "set-user", name="anna", password=SECRET, mechanism="SCRAM-SHA-256")
        assert await list_users(c.client) == [
            ScramUser("anna", "SCRAM-SHA-256", 4096),
            ScramUser("anna", "SCRAM-SHA-512", 8192),
        ]


async def test_a_password_is_nowhere_in_a_plan(tmp_path):
    async with guarded_cluster(tmp_path) as c:
        plan = await prepared(c, "set-user", name="anna", password=SECRET)
        assert SECRET not in repr(
            (plan.summary, plan.lines, plan.command, plan.warnings, plan.notes)
        )


@pytest.mark.parametrize(
    ("mechanism", "summary", "left"),
    [
        ("all", "Delete user anna", []),
        ("SCRAM-SHA-256", "Delete SCRAM-SHA-256 of user anna", ["SCRAM-SHA-512"]),
    ],
)
async def test_a_user_is_deleted_for_one_mechanism_or_all(tmp_path, mechanism, summary, left):
    async with guarded_cluster(tmp_path) as c:
        for word in ("SCRAM-SHA-256", "SCRAM-SHA-512"):
            await made(c, "set-user", name="anna", password=SECRET, mechanism=word)
        rule = AccessRule("topic", "orders", "literal", "User:anna", "*", "read", "allow")
        await create_acls(c.client, [rule])
        plan = await prepared(c, "delete-user", name="anna", mechanism=mechanism)
        assert plan.summary == summary
        assert plan.notes == ("1 ACL of User:anna remain",)
        await plan.apply()
        assert [user.mechanism for user in await list_users(c.client)] == left


@pytest.mark.parametrize(
    ("kind", "values", "field", "message"),
    [
        ("set-user", {"password": "x" * 1025}, "password", "at most 1024"),
        ("set-user", {"iterations": "4095"}, "iterations", "from 4,096 to 16,384"),
        ("set-user", {"iterations": "many"}, "iterations", "is not a whole number"),
        ("delete-user", {"name": "ana"}, "name", r"no user ana; did you mean anna\?"),
        ("delete-user", {"mechanism": "SCRAM-SHA-256"}, "mechanism", "no password for"),
    ],
)
async def test_wrong_values_are_refused(tmp_path, kind, values, field, message):
    async with guarded_cluster(tmp_path) as c:
        await made(c, "set-user", name="anna", password=SECRET)
        given = {"name": "anna"} | ({"password": SECRET} if kind == "set-user" else {}) | values
        with pytest.raises(ChangeError, match=message) as refused:
            await prepared(c, kind, **given)
        assert refused.value.field == field


async def test_a_user_that_was_deleted_meanwhile_is_refused(tmp_path):
    async with guarded_cluster(tmp_path) as c:
        await made(c, "set-user", name="anna", password=SECRET)
        await prepared(c, "delete-user", name="anna")
        await made(c, "delete-user", name="anna")
        with pytest.raises(ChangeError, match="there is no user anna"):
            await prepared(c, "delete-user", name="anna")
