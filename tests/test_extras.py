"""Install hints in messages and pages work in any shell; for zsh [tls] is a glob."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def test_extras_to_be_installed_are_quoted() -> None:
    files = [*ROOT.glob("wirebroker/**/*.py"), *ROOT.glob("docs/*.md"), ROOT / "README.md"]
    texts = {file: file.read_text(encoding="utf-8") for file in files}
    assert [str(file) for file, text in texts.items() if "install wirebroker[" in text] == []
    assert any("install 'wirebroker[" in text for text in texts.values())
