r"""The subject of a certificate as Java prints it, from which Kafka derives the client's principal.

    CN=alice,OU=Analysis,O=Example\, Inc.,C=DE

As in RFC 2253, the last part comes first, and types without a keyword are dotted numbers, with the
value's bytes in hex after `#`. The functions take a certificate in DER; bytes that are not one
raise MalformedFrameError.

Source: RFC 2253, X.690 (DER), RFC 5280; java.security's X500Principal.getName().
"""

from __future__ import annotations

from typing import Final

from wirebroker.codecs.errors import MalformedFrameError

_KEYWORDS: Final = {
    "2.5.4.3": "CN",
    "2.5.4.6": "C",
    "2.5.4.7": "L",
    "2.5.4.8": "ST",
    "2.5.4.9": "STREET",
    "2.5.4.10": "O",
    "2.5.4.11": "OU",
    "0.9.2342.19200300.100.1.1": "UID",
    "0.9.2342.19200300.100.1.25": "DC",
}
_SEQUENCE: Final = 0x30
_SET: Final = 0x31
_OID: Final = 0x06
_BOOLEAN: Final = 0x01
_BIT_STRING: Final = 0x03
_VERSION: Final = 0xA0
_EXTENSIONS: Final = 0xA3
_ALTERNATIVE_NAMES: Final = "2.5.29.17"
_KEY_USAGE: Final = "2.5.29.15"
# Bit 0 of the BIT STRING; its first byte counts the unused bits.
_DIGITAL_SIGNATURE: Final = 0x80
_SPECIAL: Final = frozenset(',=+<>#;"\\')
# UTF8String, PrintableString, T61String, IA5String, GeneralString, BMPString; like Java, all are
# read as UTF-8, so that mapping rules fit.
_TEXTS: Final = frozenset({0x0C, 0x13, 0x14, 0x16, 0x1B, 0x1E})


class _Der:
    """A reader of consecutive DER values."""

    __slots__ = ("_data", "_position")

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._position = 0

    def __bool__(self) -> bool:
        return self._position < len(self._data)

    @property
    def tag(self) -> int:
        return self._data[self._position] if self else -1

    def take(self, tag: int | None = None) -> bytes:
        """Return the content of the next value, which must have the tag, if given."""
        return self._next(tag)[0]

    def take_whole(self) -> tuple[int, bytes, bytes]:
        tag = self.tag
        inside, whole = self._next(None)
        return tag, inside, whole

    def _next(self, tag: int | None) -> tuple[bytes, bytes]:
        data, start = self._data, self._position
        if start + 2 > len(data) or (tag is not None and data[start] != tag):
            raise MalformedFrameError("a certificate has an unexpected element")
        length, position = data[start + 1], start + 2
        if length & 0x80:
            count = length & 0x7F
            length = int.from_bytes(data[position : position + count])
            position += count
        end = position + length
        if end > len(data):
            raise MalformedFrameError("a certificate ends too soon")
        self._position = end
        return data[position:end], data[start:end]


def subject_of(certificate: bytes) -> str:
    """Return the subject."""
    fields = _Der(_Der(_Der(certificate).take(_SEQUENCE)).take(_SEQUENCE))
    if fields.tag == _VERSION:
        fields.take()
    for _ in ("serial number", "algorithm", "issuer", "validity"):
        fields.take()
    names = _Der(fields.take(_SEQUENCE))
    parts: list[str] = []
    while names:
        pairs = _Der(names.take(_SET))
        texts: list[str] = []
        while pairs:
            pair = _Der(pairs.take(_SEQUENCE))
            texts.append(_pair(_number(pair.take(_OID)), pair.take_whole()))
        parts.insert(0, "+".join(texts))
    return ",".join(parts)


def alternative_names_of(certificate: bytes) -> frozenset[bytes]:
    """Return the subject alternative names, each in its encoding."""
    _, value = _extensions_of(certificate).get(_ALTERNATIVE_NAMES, (False, None))
    if value is None:
        return frozenset()
    found: set[bytes] = set()
    names = _Der(_Der(value).take(_SEQUENCE))
    while names:
        found.add(names.take_whole()[2])
    return frozenset(found)


def fault_of_client(certificate: bytes) -> str | None:
    """Return why Java refuses a client's certificate that OpenSSL accepts, or None.

    Source: sun.security.validator.EndEntityChecker, X509CertInfo; RFC 5280, 4.1.2.6 and 4.2.1.3.
    """
    extensions = _extensions_of(certificate)
    if _KEY_USAGE in extensions:
        bits = _Der(extensions[_KEY_USAGE][1]).take(_BIT_STRING)
        if not (len(bits) > 1 and bits[1] & _DIGITAL_SIGNATURE):
            return "its key may not be used for digital signatures"
    if not subject_of(certificate):
        is_critical, _ = extensions.get(_ALTERNATIVE_NAMES, (False, b""))
        if not (is_critical and alternative_names_of(certificate)):
            return "it has neither a subject nor critical alternative names"
    return None


def _extensions_of(certificate: bytes) -> dict[str, tuple[bool, bytes]]:
    fields = _Der(_Der(_Der(certificate).take(_SEQUENCE)).take(_SEQUENCE))
    while fields and fields.tag != _EXTENSIONS:
        fields.take()
    extensions = _Der(_Der(fields.take()).take(_SEQUENCE) if fields else b"")
    found: dict[str, tuple[bool, bytes]] = {}
    while extensions:
        extension = _Der(extensions.take(_SEQUENCE))
        number = _number(extension.take(_OID))
        is_critical = extension.tag == _BOOLEAN and any(extension.take())
        found[number] = is_critical, extension.take()
    return found


def _number(data: bytes) -> str:
    numbers: list[int] = []
    number = 0
    for byte in data:
        number = number << 7 | byte & 0x7F
        if not byte & 0x80:
            numbers.append(number)
            number = 0
    if not numbers:
        raise MalformedFrameError("a certificate has an empty object identifier")
    first = min(numbers[0] // 40, 2)
    return ".".join(map(str, (first, numbers[0] - 40 * first, *numbers[1:])))


def _pair(number: str, value: tuple[int, bytes, bytes]) -> str:
    tag, inside, whole = value
    keyword = _KEYWORDS.get(number)
    if keyword is None or tag not in _TEXTS:
        return f"{keyword or number}=#{whole.hex()}"
    return f"{keyword}={_escaped(inside.decode(errors='replace'))}"


def _escaped(text: str) -> str:
    left = len(text) - len(text.lstrip(" "))
    right = len(text.rstrip(" ")) if text.strip(" ") else len(text)
    found: list[str] = []
    for place, character in enumerate(text):
        if character == "\0":
            found.append("\\00")
        elif character in _SPECIAL or (character == " " and not left <= place < right):
            found.append("\\" + character)
        else:
            found.append(character)
    return "".join(found)
