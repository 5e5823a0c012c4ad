"""The tests' Java programs, compiled on first use for the tested Apache Kafka."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.support.tools import tools

if TYPE_CHECKING:
    from pathlib import Path


def compiled(name: str, sources: Path, jars: Path | None = None) -> Path:
    """Return the folder with the compiled classes of a source folder.

    Args:
        name: Purpose of the programs.
        sources: The folder of `.java` files.
        jars: Dependencies; by default Apache Kafka's own jars.
    """
    jars = tools.kafka_jars() if jars is None else jars

    def compile_into(folder: Path) -> None:
        files = [str(path) for path in sorted(sources.glob("*.java"))]
        # Jar by jar, because Eclipse's compiler does not expand `*`.
        class_path = ":".join(str(jar) for jar in sorted(jars.glob("*.jar")))
        tools._run([*tools.javac_command(), "-d", str(folder), "-cp", class_path, *files])

    install_name = f"java-{name}-{tools.KAFKA_VERSION}-{tools.sources_hash(sources, '*.java')}"
    return tools._installed(install_name, compile_into)
