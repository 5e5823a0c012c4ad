"""Authentication, authorization, policies; TLS stands in tls.py."""

from __future__ import annotations

from typing import Final

from wirebroker.config.java.jaas import unknown_mechanism
from wirebroker.config.rows.authorizer import wrong_authorizer
from wirebroker.config.rows.forms import (
    PER_BROKER,
    boolean,
    class_name,
    integer,
    items,
    kept,
    long,
    password,
    text,
)

ROWS: Final = (
    text(
        "authorizer.class.name",
        "",
        "Who decides what clients may do: Kafka's StandardAuthorizer, by the cluster's ACLs, or a "
        "class of your own as package.module:Class. Without one everybody may do everything.",
        check=wrong_authorizer,
    ),
    text(
        "super.users",
        "",
        "Principals that may do everything, with semicolons between them (User:admin;User:backup).",
        internal=True,
    ),
    boolean(
        "allow.everyone.if.no.acl.found",
        False,
        "Whether everybody may use a resource that no ACL is about.",
        internal=True,
    ),
    items(
        "sasl.enabled.mechanisms",
        "GSSAPI",
        "What clients of listeners with SASL may authenticate with: PLAIN, SCRAM-SHA-256, "
        "SCRAM-SHA-512, OAUTHBEARER and GSSAPI (Kerberos). A listener may have its own "
        "(listener.name.<listener>.sasl.enabled.mechanisms).",
        check=unknown_mechanism,
        mutability=PER_BROKER,
    ),
    password(
        "sasl.jaas.config",
        None,
        'Users of PLAIN, as options of Kafka\'s login module (user_<name>="<password>"); of other '
        "mechanisms who this broker is. Read as "
        "listener.name.<listener>.<mechanism>.sasl.jaas.config alone.",
        mutability=PER_BROKER,
    ),
    text(
        "sasl.mechanism.inter.broker.protocol",
        "GSSAPI",
        "SASL mechanism by which brokers log in to each other; their listener must offer it. Name "
        "and password stand in listener.name.<listener>.<mechanism>.sasl.jaas.config.",
        check=unknown_mechanism,
        mutability=PER_BROKER,
    ),
    class_name(
        "sasl.server.callback.handler.class",
        None,
        "Of OAUTHBEARER: Kafka's validator of signed tokens, which selects the built-in one. "
        "Read as listener.name.<listener>.oauthbearer.sasl.server.callback.handler.class.",
    ),
    text(
        "sasl.oauthbearer.jwks.endpoint.url",
        None,
        "The file (file:///…) of JSON Web Keys by which tokens of OAUTHBEARER are signed, or the "
        "server (https://…) that has them; unset: nobody signs them. Of this and the next eight a "
        "listener may have its own.",
    ),
    long(
        "sasl.oauthbearer.jwks.endpoint.refresh.ms",
        3_600_000,
        "How often keys are read again; those of a file also when it has changed, those of a "
        "server when a token names one that is unknown.",
        1,
    ),
    long(
        "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms",
        100,
        "How soon a server of keys that does not answer is asked again; each time twice as long.",
        1,
    ),
    long(
        "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms",
        10_000,
        "The longest time that this becomes.",
        1,
    ),
    text(
        "sasl.oauthbearer.expected.issuer",
        None,
        "Required issuer (iss) of signed tokens. If unset, a broker with a listener for signed "
        "tokens doesn't start, unless sasl.oauthbearer.allow.unverified.issuer is true.",
    ),
    items(
        "sasl.oauthbearer.expected.audience",
        "",
        "A signed token must name one of these in aud. If empty, a broker with a listener for "
        "signed tokens doesn't start, unless sasl.oauthbearer.allow.unverified.audience is true.",
    ),
    boolean(
        "sasl.oauthbearer.allow.unverified.audience",
        False,
        "Accept signed tokens for any audience if sasl.oauthbearer.expected.audience is empty.",
    ),
    boolean(
        "sasl.oauthbearer.allow.unverified.issuer",
        False,
        "Accept signed tokens of any issuer if sasl.oauthbearer.expected.issuer is unset.",
    ),
    integer(
        "sasl.oauthbearer.clock.skew.seconds",
        30,
        "How far the clocks of those who make signed tokens may differ from ours.",
    ),
    text(
        "sasl.oauthbearer.sub.claim.name",
        "sub",
        "What of a signed token is the name of its user.",
    ),
    text(
        "sasl.oauthbearer.scope.claim.name",
        "scope",
        "What of a signed token names its scopes.",
    ),
    text(
        "sasl.oauthbearer.token.endpoint.url",
        None,
        "Where our own tokens of OAUTHBEARER come from: a file (file:///…), or a server of "
        "identities (https://…, client credentials). Of this and the next nine a listener may have "
        "its own.",
    ),
    text(
        "sasl.oauthbearer.client.credentials.client.id",
        None,
        "Who this broker is to that server (clientId of the JAAS line, too).",
    ),
    password(
        "sasl.oauthbearer.client.credentials.client.secret",
        None,
        "What proves it (clientSecret of the JAAS line, too).",
    ),
    text(
        "sasl.oauthbearer.scope",
        None,
        "What its tokens shall be good for (scope of the JAAS line, too).",
    ),
    class_name(
        "sasl.oauthbearer.jwt.retriever.class",
        "org.apache.kafka.common.security.oauthbearer.DefaultJwtRetriever",
        "Kafka's classes for token files and client credentials, which select the built-in ones.",
    ),
    class_name(
        "sasl.login.callback.handler.class",
        None,
        "Of OAUTHBEARER: Kafka's class for such tokens, which selects the built-in one.",
    ),
    integer(
        "sasl.login.connect.timeout.ms",
        None,
        "How long connecting to that server may take; 10 s if unset.",
    ),
    integer(
        "sasl.login.read.timeout.ms",
        None,
        "How long its answer may take; 10 s if unset.",
    ),
    long(
        "sasl.login.retry.backoff.ms",
        100,
        "How soon it is asked again, if it does not answer; each time twice as long.",
    ),
    long(
        "sasl.login.retry.backoff.max.ms",
        10_000,
        "How long it is asked again for one login.",
    ),
    text(
        "sasl.mechanism.controller.protocol",
        "GSSAPI",
        "SASL mechanism by which brokers log in to controllers of other processes; likewise.",
        check=unknown_mechanism,
    ),
    password(
        "delegation.token.secret.key",
        None,
        "By which delegation tokens are made and checked, the same on every node of a cluster; "
        "unset: there are none.",
    ),
    long(
        "delegation.token.max.lifetime.ms",
        7 * 24 * 3_600_000,
        "How long a delegation token may be renewed at most.",
        1,
    ),
    long(
        "delegation.token.expiry.time.ms",
        24 * 3_600_000,
        "After how long a delegation token expires that nobody renews.",
        1,
    ),
    long(
        "delegation.token.expiry.check.interval.ms",
        3_600_000,
        "How often the controller removes delegation tokens that have expired.",
        1,
    ),
    integer(
        "wirebroker.delegation.tokens",
        10_000,
        "How many delegation tokens one principal may have made that are not removed yet.",
        1,
    ),
    text(
        "security.inter.broker.protocol",
        "PLAINTEXT",
        "Security protocol, by which other brokers find their listener unless "
        "inter.broker.listener.name names it.",
        choices=("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"),
    ),
    integer(
        "sasl.server.max.receive.size",
        524_288,
        "Largest request that is read before its client has authenticated.",
        1,
    ),
    long(
        "connections.max.reauth.ms",
        0,
        "After how long clients with SASL authenticate again, or are closed at their next request "
        "(KIP-368); 0 is never. A listener, and a mechanism of it, may have its own.",
    ),
    integer(
        "connection.failed.authentication.delay.ms",
        100,
        "How long a client that failed to authenticate waits until it is told so and closed.",
        0,
    ),
    items(
        "sasl.kerberos.principal.to.local.rules",
        "DEFAULT",
        "Which user a client of GSSAPI is, by its principal, in Kafka's words (security.md); "
        "DEFAULT is the first part, of the default realm alone. A listener may have its own, of "
        "this and the next.",
        mutability=PER_BROKER,
    ),
    text(
        "sasl.kerberos.service.name",
        None,
        "Of GSSAPI: the first part of the principals of brokers that are logged in to.",
        mutability=PER_BROKER,
    ),
    *kept(
        "the broker itself decides when to renew logins.",
        """
        sasl.kerberos.kinit.cmd string /usr/bin/kinit - per-broker
        sasl.kerberos.min.time.before.relogin long 60000 - per-broker
        sasl.kerberos.ticket.renew.jitter double 0.05 - per-broker
        sasl.kerberos.ticket.renew.window.factor double 0.8 - per-broker
        sasl.login.refresh.buffer.seconds short 300 - per-broker
        sasl.login.refresh.min.period.seconds short 60 - per-broker
        sasl.login.refresh.window.factor double 0.8 - per-broker
        sasl.login.refresh.window.jitter double 0.05 - per-broker
        """,
    ),
    *kept(
        "no Java classes are loaded.",
        """
        alter.config.policy.class.name class - - read-only asks
        create.topic.policy.class.name class - - read-only asks
        sasl.client.callback.handler.class class - - read-only
        sasl.login.class class - - read-only
        sasl.oauthbearer.jwt.validator.class class org.apache.kafka.common.security.oauthbearer.DefaultJwtValidator - read-only
        security.providers string - - read-only asks
        """,  # noqa: E501 - the name of a class
    ),
    *kept(
        "brokers log in to OAUTHBEARER with a token file or client credentials, not an assertion.",
        """
        sasl.oauthbearer.assertion.algorithm string RS256 - read-only
        sasl.oauthbearer.assertion.claim.aud string - - read-only
        sasl.oauthbearer.assertion.claim.exp.seconds int 300 - read-only
        sasl.oauthbearer.assertion.claim.iss string - - read-only
        sasl.oauthbearer.assertion.claim.jti.include boolean false - read-only
        sasl.oauthbearer.assertion.claim.nbf.seconds int 60 - read-only
        sasl.oauthbearer.assertion.claim.sub string - - read-only
        sasl.oauthbearer.assertion.file string - - read-only
        sasl.oauthbearer.assertion.private.key.file string - - read-only
        sasl.oauthbearer.assertion.private.key.passphrase password - - read-only
        sasl.oauthbearer.assertion.template.file string - - read-only
        """,
    ),
)
