"""The first voters of a dynamic quorum, from a list or a node's own settings."""

from __future__ import annotations

import pytest

from wirebroker.codecs.primitives import uuid_from_text
from wirebroker.codecs.records.control import Voter, VoterEndpoint
from wirebroker.config import Config, ConfigError
from wirebroker.quorum.formatting.first_voters import (
    QuorumFlags,
    first_voters,
    parse_voters,
    standalone_voter,
)

FIRST, SECOND = "JEXY6aqzQY-32P5TStzaFg", "MvDxzVmcRsaTz33bUuRU6A"
CONTROLLER = {
    "process.roles": "controller",
    "node.id": "7",
    "listeners": "CONTROLLER://:9093,OTHER://:9094",
    "controller.listener.names": "CONTROLLER,OTHER",
    "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,OTHER:PLAINTEXT",
}


def test_voters_of_a_list_are_sorted_by_id():
    text = f"2@[::1]:9093:{SECOND},,1@host:0:{FIRST}, "
    assert parse_voters(text, "ctl") == (
        Voter(1, uuid_from_text(FIRST), (VoterEndpoint("CTL", "host", 0),), 0, 1),
        Voter(2, uuid_from_text(SECOND), (VoterEndpoint("CTL", "0:0:0:0:0:0:0:1", 9093),), 0, 1),
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (" , ", "No voters given."),
        (",", "No voters given."),
        ("1", "No @ found in dynamic voter string."),
        ("@host:1:x", "Invalid @ at beginning of dynamic voter string."),
        ("x@host:1:x", "Failed to parse node id in dynamic voter string."),
        ("2147483648@host:1:x", "Failed to parse node id in dynamic voter string."),
        ("-1@host:1:x", "Invalid negative node id -1 in dynamic voter string."),
        ("1@", "No hostname found after node id."),
        ("1@[::1", "Hostname began with left bracket, but no right bracket was found."),
        ("1@[::1]9093", "Port section must start with a colon."),
        ("1@host", "No colon following hostname could be found."),
        ("1@host:9093", "No colon following port could be found."),
        ("1@host:x:y", "Failed to parse port in dynamic voter string."),
        ("1@host:65536:y", "Invalid port 65536 in dynamic voter string."),
        ("1@host:9093:y", "Failed to parse directory ID in dynamic voter string."),
        (f"1@a:1:{FIRST},1@b:1:{SECOND}", "Node id 1 was specified more than once."),
    ],
)
def test_invalid_lists_of_voters_are_refused_in_kafkas_words(text, message):
    with pytest.raises(ConfigError) as refusal:
        parse_voters(text)
    assert str(refusal.value) == message


def test_standalone_voter_has_the_first_controller_listener():
    voter = standalone_voter(Config(CONTROLLER), uuid_from_text(FIRST))
    endpoint = VoterEndpoint("CONTROLLER", "localhost", 9093)
    assert voter == Voter(7, uuid_from_text(FIRST), (endpoint,), 0, 1)
    advertised = {"advertised.listeners": "CONTROLLER://c7:19093,OTHER://c7:19094"}
    voter = standalone_voter(Config(CONTROLLER | advertised))
    assert voter.endpoints == (VoterEndpoint("CONTROLLER", "c7", 19093),)
    assert any(voter.directory_id)


@pytest.mark.parametrize(
    ("settings", "flags", "message"),
    [
        ({}, QuorumFlags(), "you must specify one of the following: --standalone"),
        ({}, QuorumFlags(is_standalone=True, joins=True), "give one of --standalone"),
        (
            {"controller.quorum.voters": "7@host:9093"},
            QuorumFlags(is_standalone=True),
            "please remove controller.quorum.voters",
        ),
        (
            {"controller.quorum.voters": "7@host:9093"},
            QuorumFlags(listed=f"7@host:9093:{FIRST}"),
            "please remove controller.quorum.voters",
        ),
        (
            {
                "process.roles": "broker",
                "listeners": "PLAINTEXT://:9092",
                "controller.listener.names": "CONTROLLER",
                "controller.quorum.bootstrap.servers": "host:9093",
            },
            QuorumFlags(is_standalone=True),
            "You can only use --standalone on a controller.",
        ),
    ],
)
def test_contradictory_flags_are_refused(settings, flags, message):
    with pytest.raises(ConfigError, match=message):
        first_voters(Config(CONTROLLER | settings), flags)


@pytest.mark.parametrize(
    ("settings", "flags"),
    [
        ({"controller.quorum.voters": "7@host:9093"}, QuorumFlags()),
        ({"controller.quorum.voters": "7@host:9093"}, QuorumFlags(joins=True)),
        ({"controller.quorum.bootstrap.servers": "host:9093"}, QuorumFlags(joins=True)),
    ],
)
def test_static_voters_and_joining_nodes_have_no_first_voters(settings, flags):
    assert first_voters(Config(CONTROLLER | settings), flags) == ()
