"""Configs of authentication, authorization and policies; TLS is in tls.py."""

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
        "Authorizer of requests: Kafka's StandardAuthorizer, which applies the cluster's ACLs, "
        "or a Python class as package.module:Class. Without one, every client may do everything.",
        check=wrong_authorizer,
    ),
    text(
        "super.users",
        "",
        "Principals that may do everything, separated by semicolons (User:admin;User:backup).",
        internal=True,
    ),
    boolean(
        "allow.everyone.if.no.acl.found",
        False,
        "Whether everyone may use a resource without ACLs.",
        internal=True,
    ),
    items(
        "sasl.enabled.mechanisms",
        "GSSAPI",
        "SASL mechanisms of listeners with SASL: PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, "
        "OAUTHBEARER and GSSAPI (Kerberos). A listener can have its own "
        "(listener.name.<listener>.sasl.enabled.mechanisms).",
        check=unknown_mechanism,
        mutability=PER_BROKER,
    ),
    password(
        "sasl.jaas.config",
        None,
        'Options of Kafka\'s login module: the users of PLAIN (user_<name>="<password>") and the '
        "broker's own credentials. Only listener.name.<listener>.<mechanism>.sasl.jaas.config is "
        "read.",
        mutability=PER_BROKER,
    ),
    text(
        "sasl.mechanism.inter.broker.protocol",
        "GSSAPI",
        "SASL mechanism of connections between brokers; their listener must offer it. The "
        "credentials are in listener.name.<listener>.<mechanism>.sasl.jaas.config.",
        check=unknown_mechanism,
        mutability=PER_BROKER,
    ),
    class_name(
        "sasl.server.callback.handler.class",
        None,
        "For OAUTHBEARER: Kafka's validator of signed tokens, which selects the built-in one. "
        "Only listener.name.<listener>.oauthbearer.sasl.server.callback.handler.class is read.",
    ),
    text(
        "sasl.oauthbearer.jwks.endpoint.url",
        None,
        "File (file:///…) or web server (https://…) with the JSON Web Keys that verify tokens of "
        "OAUTHBEARER; if unset, tokens are not signed. A listener can have its own value, as for "
        "all sasl.oauthbearer configs.",
    ),
    long(
        "sasl.oauthbearer.jwks.endpoint.refresh.ms",
        3_600_000,
        "Interval at which keys are read again. A changed file, and a server when a token names "
        "an unknown key, are read earlier.",
        1,
    ),
    long(
        "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms",
        100,
        "Delay before the first retry if the key server does not respond; it doubles with each "
        "retry.",
        1,
    ),
    long(
        "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms",
        10_000,
        "Longest delay between two retries of the key server.",
        1,
    ),
    text(
        "sasl.oauthbearer.expected.issuer",
        None,
        "Required issuer (iss) of signed tokens. If unset, a broker with a listener for signed "
        "tokens does not start, unless sasl.oauthbearer.allow.unverified.issuer is true.",
    ),
    items(
        "sasl.oauthbearer.expected.audience",
        "",
        "Audiences of which a signed token must name one (aud). If empty, a broker with a "
        "listener for signed tokens does not start, unless "
        "sasl.oauthbearer.allow.unverified.audience is true.",
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
        "Allowed difference between the clocks of the token issuer and the broker.",
    ),
    text(
        "sasl.oauthbearer.sub.claim.name",
        "sub",
        "Claim of a signed token that contains its user.",
    ),
    text(
        "sasl.oauthbearer.scope.claim.name",
        "scope",
        "Claim of a signed token that contains its scopes.",
    ),
    text(
        "sasl.oauthbearer.token.endpoint.url",
        None,
        "Source of the broker's own tokens of OAUTHBEARER: a file (file:///…), or an identity "
        "provider (https://…, client credentials). A listener can have its own value, as for all "
        "sasl.oauthbearer and sasl.login configs.",
    ),
    text(
        "sasl.oauthbearer.client.credentials.client.id",
        None,
        "Client id of the broker at the identity provider (or clientId in the JAAS line).",
    ),
    password(
        "sasl.oauthbearer.client.credentials.client.secret",
        None,
        "Client secret of the broker at the identity provider (or clientSecret in the JAAS line).",
    ),
    text(
        "sasl.oauthbearer.scope",
        None,
        "Scope of the tokens that the broker requests (or scope in the JAAS line).",
    ),
    class_name(
        "sasl.oauthbearer.jwt.retriever.class",
        "org.apache.kafka.common.security.oauthbearer.DefaultJwtRetriever",
        "Kafka's class for token files or client credentials, which selects the built-in one.",
    ),
    class_name(
        "sasl.login.callback.handler.class",
        None,
        "For OAUTHBEARER: Kafka's class for such tokens, which selects the built-in one.",
    ),
    integer(
        "sasl.login.connect.timeout.ms",
        None,
        "Timeout for connecting to the identity provider; 10 s if unset.",
    ),
    integer(
        "sasl.login.read.timeout.ms",
        None,
        "Timeout for the identity provider's response; 10 s if unset.",
    ),
    long(
        "sasl.login.retry.backoff.ms",
        100,
        "Delay before the first retry if the identity provider does not respond; it doubles with "
        "each retry.",
    ),
    long(
        "sasl.login.retry.backoff.max.ms",
        10_000,
        "Time limit for the retries of one login.",
    ),
    text(
        "sasl.mechanism.controller.protocol",
        "GSSAPI",
        "SASL mechanism of connections to controllers in other processes; credentials as for "
        "sasl.mechanism.inter.broker.protocol.",
        check=unknown_mechanism,
    ),
    password(
        "delegation.token.secret.key",
        None,
        "Key that signs delegation tokens, the same on every node of a cluster; if unset, there "
        "are no delegation tokens.",
    ),
    long(
        "delegation.token.max.lifetime.ms",
        7 * 24 * 3_600_000,
        "Maximum lifetime of a delegation token, renewals included.",
        1,
    ),
    long(
        "delegation.token.expiry.time.ms",
        24 * 3_600_000,
        "Time after which a delegation token expires if it is not renewed.",
        1,
    ),
    long(
        "delegation.token.expiry.check.interval.ms",
        3_600_000,
        "Interval at which the controller removes expired delegation tokens.",
        1,
    ),
    integer(
        "wirebroker.delegation.tokens",
        10_000,
        "Maximum number of delegation tokens per principal; expired ones count until they are "
        "removed.",
        1,
    ),
    text(
        "security.inter.broker.protocol",
        "PLAINTEXT",
        "Security protocol that selects the listener for other brokers if "
        "inter.broker.listener.name is unset.",
        choices=("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"),
    ),
    integer(
        "sasl.server.max.receive.size",
        524_288,
        "Largest request that is accepted before the client has authenticated.",
        1,
    ),
    long(
        "connections.max.reauth.ms",
        0,
        "Time after which clients with SASL must authenticate again, or are disconnected at "
        "their next request (KIP-368); 0 disables this. A listener, and each of its mechanisms, "
        "can have its own value.",
    ),
    integer(
        "connection.failed.authentication.delay.ms",
        100,
        "Delay before the broker responds to a failed authentication and closes the connection.",
        0,
    ),
    items(
        "sasl.kerberos.principal.to.local.rules",
        "DEFAULT",
        "Rules that map Kerberos principals to users, in Kafka's syntax (security.md); DEFAULT "
        "takes the first part of principals of the default realm. A listener can have its own.",
        mutability=PER_BROKER,
    ),
    text(
        "sasl.kerberos.service.name",
        None,
        "For GSSAPI: first part of the Kerberos principals of the brokers to log in to. A "
        "listener can have its own.",
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
        "brokers log in by OAUTHBEARER with a token file or client credentials, not an assertion.",
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
