"""What users' SCRAM credentials look like to whoever only claims a name: iterations, and a salt.

Counted over a cluster's users, so that a name that nobody has can be shown what a user's would be
(mechanisms.py of wirebroker/security): as many iterations, and a salt of the same form, as often as
users have them.

Source: RFC 5802, 9 (security considerations); Kafka's ScramFormatter, which makes salts of its
tools' and clients' users.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from wirebroker.codecs.scram import LEAST_ITERATIONS

if TYPE_CHECKING:
    from wirebroker.codecs.scram import ScramKeys

# A number of 130 bits to the base of 36 (salt_of); one in 2^47 is shorter.
_TEXT_BYTES: Final = range(16, 27)
_DIGITS: Final = frozenset(b"0123456789abcdefghijklmnopqrstuvwxyz")


class ScramForm(NamedTuple):
    """What a credential looks like.

    Attributes:
        iterations: At least LEAST_ITERATIONS.
        salt_bytes: How long the salt is; 0: it is a text, as Kafka's tools make it.
    """

    iterations: int
    salt_bytes: int


COMMON: Final = ScramForm(LEAST_ITERATIONS, 0)
# How many users have each form; no zeros.
ScramForms: TypeAlias = Mapping[ScramForm, int]


def form_of(keys: ScramKeys) -> ScramForm | None:
    """Return what a credential looks like; None if nobody can log in by it."""
    if keys.iterations < LEAST_ITERATIONS:
        return None
    salt = keys.salt
    is_text = len(salt) in _TEXT_BYTES and salt[:1] != b"0" and _DIGITS.issuperset(salt)
    return ScramForm(keys.iterations, 0 if is_text else len(salt))


def form_at(forms: ScramForms, chance: int) -> ScramForm:
    """Return a form, each as often as users have it.

    Args:
        forms: Of the users; if there are none, they would be made by Kafka's tools.
        chance: A number that nobody can guess, of 64 bits.
    """
    left = chance * sum(forms.values()) >> 64
    for form, count in sorted(forms.items()):
        left -= count
        if left < 0:
            return form
    return COMMON
