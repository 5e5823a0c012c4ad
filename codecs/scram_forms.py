"""The visible form of SCRAM credentials: iterations and the kind of salt.

Forms are counted over a cluster's users, so that a login with an unknown name gets a plausible salt
and iterations (wirebroker/security/sasl/mechanisms.py).

Source: RFC 5802, 9 (security considerations); Kafka's ScramFormatter for salts.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from wirebroker.codecs.scram import LEAST_ITERATIONS

if TYPE_CHECKING:
    from wirebroker.codecs.scram import ScramKeys

# Length of a 130-bit number in base 36; one in 2^52 is shorter.
_TEXT_BYTES: Final = range(16, 27)
_DIGITS: Final = frozenset(b"0123456789abcdefghijklmnopqrstuvwxyz")


class ScramForm(NamedTuple):
    """The visible form of a credential.

    Attributes:
        salt_bytes: Length of the salt; 0: a text, as Kafka's tools generate it.
    """

    iterations: int
    salt_bytes: int


COMMON: Final = ScramForm(LEAST_ITERATIONS, 0)
# Number of users of each form; no zeros.
ScramForms: TypeAlias = Mapping[ScramForm, int]


def form_of(keys: ScramKeys) -> ScramForm | None:
    """Return the form of a credential; None if it is too weak for a login."""
    if keys.iterations < LEAST_ITERATIONS:
        return None
    salt = keys.salt
    is_text = len(salt) in _TEXT_BYTES and salt[:1] != b"0" and _DIGITS.issuperset(salt)
    return ScramForm(keys.iterations, 0 if is_text else len(salt))


def form_at(forms: ScramForms, chance: int) -> ScramForm:
    """Return a form, with a probability in proportion to its users; by default Kafka's tools' form.

    `chance` is an unpredictable number of 64 bits.
    """
    left = chance * sum(forms.values()) >> 64
    for form, count in sorted(forms.items()):
        left -= count
        if left < 0:
            return form
    return COMMON
