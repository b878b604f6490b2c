"""The numbers of one running provider, put together from its options and its declaration."""

from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TypeVar

from bigfleet_providerkit.errors import OptionError
from bigfleet_providerkit.hostexec.userdata import FirstBoot
from bigfleet_providerkit.machines.state import Kind
from bigfleet_providerkit.offerings.offering import Offering
from bigfleet_providerkit.options.model import LABEL, KitOptions
from bigfleet_providerkit.spec import ProviderSpec, Timeouts

O = TypeVar("O", bound=KitOptions)  # noqa: E741 - the options model of one provider
HEAL_AFTER = 600.0
HEAL_REFUSED_AFTER = 30.0
DRAIN_SLACK = 60.0


@dataclass(frozen=True, slots=True)
class Settings:
    """What the backend and the service go by."""

    label: str
    timeouts: Timeouts
    heal_after: float
    reconcile_interval: float
    poll_interval: float
    consistency_window: float
    orphan_grace: float
    orphans_removed: bool
    delete_offered: bool
    max_metadata: int
    max_blob: int
    hook: str
    pinned_host_keys: bool = False
    first_boot: FirstBoot = "cloud-init"

    def limit(self, kind: Kind, grace: int = 0, instance_type: str = "") -> float:
        """The longest a transition may take; a drain is also bound by its grace."""
        match kind:
            case Kind.CREATE:
                for pattern, seconds in self.timeouts.create_of.items():
                    if fnmatchcase(instance_type, pattern):
                        return seconds
                return self.timeouts.create
            case Kind.CONFIGURE:
                return self.timeouts.configure
            case Kind.DRAIN:
                return min(self.timeouts.drain, grace + DRAIN_SLACK)
            case Kind.DELETE:
                return self.timeouts.delete


def settings_from(
    spec: ProviderSpec[O], options: O, offerings: Sequence[Offering], *, fake: bool
) -> Settings:
    """The settings of a provider that is about to start."""
    delete = spec.delete_offered(offerings)
    heal = options.failed_cleanup_after
    if heal is None:
        declared = HEAL_AFTER if spec.heal_after is None else spec.heal_after
        heal = declared if delete else 0.0
    poll = options.poll_interval
    label = options.provider or spec.default_label(options)
    if not LABEL.fullmatch(label):
        raise OptionError(
            f"{label!r} is not a label for hosts; give one with --provider: a-z, 0-9 and -, "
            "at most 40 characters"
        )
    return Settings(
        label=label,
        timeouts=_timeouts(spec.declared_timeouts(options), options),
        heal_after=heal,
        reconcile_interval=options.reconcile_interval,
        poll_interval=spec.poll_interval if poll is None else poll,
        consistency_window=0.0 if fake else spec.consistency_window,
        orphan_grace=options.orphan_grace,
        orphans_removed=options.orphans == "terminate",
        delete_offered=delete,
        max_metadata=options.max_metadata_bytes,
        max_blob=spec.limits.blob,
        hook=options.bootstrap_hook,
        pinned_host_keys=spec.pinned_host_keys,
        first_boot=spec.first_boot,
    )


def _timeouts(declared: Timeouts, options: KitOptions) -> Timeouts:
    every = options.transition_timeout

    def chosen(own: float | None, default: float) -> float:
        if own is not None:
            return own
        return default if every is None else every

    return Timeouts(
        chosen(options.create_timeout, declared.create),
        chosen(options.configure_timeout, declared.configure),
        chosen(options.drain_timeout, declared.drain),
        chosen(options.delete_timeout, declared.delete),
        declared.create_of if every is None and options.create_timeout is None else {},
    )
