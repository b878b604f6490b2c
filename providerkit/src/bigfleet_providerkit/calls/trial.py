"""Trying calls that can change nothing, to see which of them would be refused.

A substrate's `missing_permissions` lists its trials: dry runs, plain reads, and calls about objects
that cannot exist. What the cloud answers to a call that was permitted is the provider's to know.
"""

from collections.abc import Awaitable, Callable, Iterable

from bigfleet_providerkit.errors import SubstrateError, Unauthorized

Trial = tuple[str, Callable[[], Awaitable[object]]]
"""The name of a call, and how it is tried."""


async def failing_calls(
    trials: Iterable[Trial], permitted: Callable[[SubstrateError], bool]
) -> list[str]:
    """A sentence for each call that would fail, each once. `permitted` recognises the errors that
    a trial gives when the call is allowed."""
    problems = dict[str, None]()
    for op, attempt in trials:
        try:
            await attempt()
        except Unauthorized as error:
            problems[str(error)] = None
        except SubstrateError as error:
            if not permitted(error):
                problems[f"{op} would fail: {error}"] = None
    return list(problems)
