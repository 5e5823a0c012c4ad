"""A Kerberos realm for tests: MIT's server from Debian's packages, on its own port.

    with Realm(folder) as realm:
        keytab = realm.add("kafka/127.0.0.1")
        environment = realm.environment()       of processes that use the realm

Needs neither root nor the system's krb5.conf. If the Python package `gssapi` is not installed, it
is built against the same packages. `missing()` returns why either is unavailable.
"""

from __future__ import annotations

import importlib.util
import os
import signal
import subprocess
import sys
from functools import cache
from typing import TYPE_CHECKING

from tests.support.tools import tools
from tests.support.tools.ports import HOST, free_port
from tests.support.tools.waiting import eventually

if TYPE_CHECKING:
    from pathlib import Path

NAME = "TEST.LOCAL"
_PACKAGES = (
    *("krb5-kdc", "krb5-admin-server", "krb5-user", "libkrb5-dev", "krb5-multidev", "comerr-dev"),
    *("libgssapi-krb5-2", "libkrb5-3", "libkrb5support0", "libk5crypto3", "libcom-err2"),
    *("libgssrpc4", "libkadm5clnt-mit12", "libkadm5srv-mit12", "libkdb5-10", "libkeyutils1"),
    *("libverto1", "libverto-libev1", "libev4", "libss2"),
)
_GSSAPI = "gssapi>=1.9,<2"


@cache
def missing() -> str | None:
    """Install the prerequisites; return why that is impossible, or None."""
    try:
        python_path()
    except tools.ToolError as error:
        return f"no Kerberos for tests: {str(error).splitlines()[0]}"
    return None


@cache
def packages() -> Path:
    return tools.debian_packages("krb5", _PACKAGES)


def headers() -> tuple[Path, Path]:
    folder = packages() / "usr" / "include"
    return folder / "mit-krb5", folder


@cache
def python_path() -> str | None:
    if importlib.util.find_spec("gssapi") is not None:
        packages()
        return None
    libraries = _libraries()
    system, own = headers()
    flags = {
        "GSSAPI_COMPILER_ARGS": f"-isystem {system} -I{own} -DHAS_GSSAPI_EXT_H",
        "GSSAPI_LINKER_ARGS": f"-L{libraries} -Wl,-rpath,{libraries} -lgssapi_krb5",
        "GSSAPI_KRB5CONFIG": "true",  # both are set above
    }

    def build(target: Path) -> None:
        pip = [sys.executable, "-m", "pip", "install", "-q", "--target", str(target), _GSSAPI]
        tools._run(pip, flags)

    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    return str(tools._installed(f"gssapi-{version}", build))


def _libraries() -> Path:
    return next(packages().glob("usr/lib/*/libkdb5.so.10")).parent


class Realm:
    """The realm TEST.LOCAL with its server.

    Args:
        folder: Folder for its database, configuration and keytabs.
        clock_skew_s: Allowed clock skew for processes with `environment`.
    """

    def __init__(self, folder: Path, *, clock_skew_s: int = 300) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.port = free_port()
        self.config = self.write_config("krb5.conf", clock_skew_s)
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Realm:
        plugins = next(packages().glob("usr/lib/*/krb5/plugins/kdb"))
        (self.folder / "kdc.conf").write_text(
            f'[kdcdefaults]\nkdc_listen = ""\nkdc_tcp_listen = "{HOST}:{self.port}"\n'
            f"[realms]\n{NAME} = {{\ndatabase_name = {self.folder}/principal\n"
            f"key_stash_file = {self.folder}/stash\nacl_file = {self.folder}/acl\n}}\n"
            f"[dbmodules]\ndb_module_dir = {plugins}\n"
            f"[logging]\nkdc = FILE:{self.folder}/kdc.log\n"
        )
        self._run("sbin/kdb5_util", "create", "-s", "-P", "master", "-r", NAME)
        command = [str(packages() / "usr/sbin/krb5kdc"), "-n"]
        with (self.folder / "kdc.out").open("wb") as output:
            self._process = subprocess.Popen(
                command, env=self._own_environment(), stdout=output, stderr=output
            )
        eventually(lambda: "commencing operation" in self._log())
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGTERM)
        self._process.wait(10)

    def write_config(self, name: str, clock_skew_s: int) -> Path:
        """Write a configuration for clients and services; return its path."""
        path = self.folder / name
        path.write_text(
            f"[libdefaults]\ndefault_realm = {NAME}\nclockskew = {clock_skew_s}\n"
            "dns_lookup_kdc = false\ndns_lookup_realm = false\nrdns = false\n"
            "dns_canonicalize_hostname = false\nudp_preference_limit = 1\n"
            f"[realms]\n{NAME} = {{\nkdc = {HOST}:{self.port}\n}}\n"
        )
        return path

    def add(self, principal: str, *options: str) -> Path:
        """Add a principal with a new key; return its keytab.

        Args:
            principal: Without the realm.
            options: Of kadmin's addprinc.
        """
        keytab = self.folder / f"{principal.replace('/', '_')}.keytab"
        self._run("sbin/kadmin.local", "addprinc", "-randkey", *options, principal)
        self._run("sbin/kadmin.local", "ktadd", "-k", str(keytab), principal)
        return keytab

    def new_key(self, principal: str) -> None:
        """Change a principal's key to one that no keytab has."""
        self._run("sbin/kadmin.local", "cpw", "-randkey", principal)

    def kinit(self, principal: str, keytab: Path, *options: str) -> Path:
        """Get a ticket for a principal; return its cache."""
        cache_file = self.folder / f"{principal}.cache"
        self._run("bin/kinit", "-kt", str(keytab), "-c", str(cache_file), *options, principal)
        return cache_file

    def environment(self, config: Path | None = None) -> dict[str, str]:
        """Return the environment variables of processes that use the realm."""
        path = python_path()
        paths = [entry for entry in (path, os.environ.get("PYTHONPATH")) if entry]
        return {
            "KRB5_CONFIG": str(config or self.config),
            "KRB5RCACHEDIR": str(self.folder),
            **({"PYTHONPATH": os.pathsep.join(paths)} if paths else {}),
        }

    def _own_environment(self) -> dict[str, str]:
        return {
            **os.environ,
            **self.environment(),
            "KRB5_KDC_PROFILE": str(self.folder / "kdc.conf"),
            "LD_LIBRARY_PATH": str(_libraries()),
        }

    def _run(self, program: str, *arguments: str) -> None:
        command = [str(packages() / "usr" / program), *arguments]
        done = subprocess.run(
            command, env=self._own_environment(), capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"

    def _log(self) -> str:
        log = self.folder / "kdc.log"
        return log.read_text(errors="replace") if log.exists() else ""
