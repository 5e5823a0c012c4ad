"""The imports of a start, without modules that are used later or never."""

import subprocess
import sys

from tests.support.tools.ports import free_port

# Ours: needed only by some nodes, verbs or later. Others: imported by such a part.
_NOT_AT_A_START = {
    "wirebroker.authorization.access",
    "wirebroker.authorization.acl_index",
    "wirebroker.authorization.authorizer",
    "wirebroker.authorization.config_rules",
    "wirebroker.authorization.guarded",
    "wirebroker.authorization.ruling",
    "wirebroker.cli.cli_inspect",
    "wirebroker.client",
    "wirebroker.maintenance.compaction_worker",
    "wirebroker.config.docs",
    "wirebroker.config.security.kerberos",
    "wirebroker.config.security.oauth",
    "wirebroker.config.security.outgoing",
    "wirebroker.config.java.properties",
    "wirebroker.config.security.sasl",
    "wirebroker.config.security.tls",
    "wirebroker.http.server",
    "wirebroker.inspect",
    "wirebroker.quorum.membership.joined_quorum",
    "wirebroker.net.client.connection",
    "wirebroker.security.sasl.kerberos",
    "wirebroker.security.sasl.sasl_state",
    "wirebroker.security.tls.listeners_tls",
    "wirebroker.security.tokens.tokens",
    "wirebroker.storage.compaction.map",
    "wirebroker.testing",
    "bz2",
    "cramjam",
    "difflib",
    "encodings.idna",
    "h11",
    "hashlib",
    "http",
    "kafka",
    "lz4",
    "lzma",
    "re2",
    "shutil",
    "ssl",
    "zstandard",
}

_OF_BROKERS = (
    "wirebroker.broker.server",
    "wirebroker.coordination",
    "wirebroker.coordinator.groups",
    "wirebroker.coordinator.transactions",
    "wirebroker.maintenance",
    "wirebroker.replica",
    "wirebroker.replication",
)

_START = """
import os, signal, sys
import wirebroker.cli.main, wirebroker.base.asyncio_without_ssl

def begin():
    import_without_ssl()
    import wirebroker.broker.serve_process
    wirebroker.broker.serve_process._say_ready = ready

def ready(server):
    print(*sys.modules, file=sys.__stdout__, flush=True)
    os.kill(os.getpid(), signal.SIGTERM)

import_without_ssl = wirebroker.base.asyncio_without_ssl.import_without_ssl
wirebroker.base.asyncio_without_ssl.import_without_ssl = begin
sys.exit(wirebroker.cli.main.run(["serve", "--port", "0", "--data-dir", sys.argv[1]]))
"""


def test_start_imports_only_required_modules(tmp_path):
    command = [sys.executable, "-c", _START, str(tmp_path / "data")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    imported = set(done.stdout.split())
    assert {"wirebroker.api.data.produce", "wirebroker.coordinator.groups.shard.shard"} <= imported
    assert not imported & _NOT_AT_A_START


def test_ssl_can_be_imported_after_asyncio_was_loaded_without_it(tmp_path):
    code = (
        "import sys\n"
        "from wirebroker.base.asyncio_without_ssl import import_without_ssl as do; do()\n"
        "import asyncio.base_events, ssl\n"
        "assert asyncio.base_events.ssl is None and ssl.create_default_context()\n"
        "do(); assert sys.modules['ssl'] is ssl\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_controller_does_not_import_the_broker(tmp_path):
    port = free_port()
    properties = tmp_path / "server.properties"
    properties.write_text(
        f"process.roles=controller\nnode.id=1\nlisteners=CONTROLLER://127.0.0.1:{port}\n"
        f"controller.listener.names=CONTROLLER\nlog.dirs={tmp_path / 'data'}\n"
        f"controller.quorum.voters=1@127.0.0.1:{port}\n"
    )
    code = _START.replace('"--port", "0", "--data-dir", sys.argv[1]', '"--config", sys.argv[1]')
    command = [sys.executable, "-c", code, str(properties)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    imported = done.stdout.split()
    assert "wirebroker.quorum.controller.quorum_controller" in imported
    assert [name for name in imported if name.startswith(_OF_BROKERS)] == []
