"""Operation ids: `<store id>-<counter>`, never used twice.

The store id is made with the store from ten random characters; the counter is kept in the same
transaction as the operation it names. At most 32 characters of [a-z0-9-], so that every cloud takes
an id as its idempotency token and as part of a name.
"""

from dataclasses import dataclass

STORE_ALPHABET = "abcdefghijklmnopqrstuvwxyz234567"
_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"
STORE_ID_LENGTH = 10


def base36(number: int) -> str:
    """A non-negative number in base 36."""
    digits = []
    while True:
        number, digit = divmod(number, 36)
        digits.append(_DIGITS[digit])
        if not number:
            return "".join(reversed(digits))


@dataclass(slots=True)
class OperationIds:
    """Hands out ids; the counter goes into the store with each."""

    store_id: str
    counter: int = 0

    def next(self) -> str:
        """An id that was never used."""
        self.counter += 1
        return f"{self.store_id}-{base36(self.counter)}"

    def ours(self, operation: str) -> bool:
        """Whether an id was made by this store."""
        return operation.startswith(f"{self.store_id}-")
