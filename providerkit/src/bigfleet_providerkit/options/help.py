"""`--help` and the option tables of the documentation, written from the declarations."""

import os
import sys
import textwrap
from collections.abc import Callable

from pydantic.fields import FieldInfo

from bigfleet_providerkit.options.model import KitOptions, Opt, described
from bigfleet_providerkit.options.parse import PREFIX
from bigfleet_providerkit.options.units import write_duration


def default_text(field: FieldInfo, opt: Opt) -> str:
    """The default of an option as people write it."""
    value = field.get_default(call_default_factory=True)
    if value is None or value in ("", {}):
        return opt.unset or "none"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        is_duration = "duration" in repr(field.metadata) or "duration" in repr(field.annotation)
        return write_duration(value) if is_duration else f"{value:g}"
    return str(value)


def help_text(program: str, summary: str, model: type[KitOptions]) -> str:
    """Everything a person can give, with defaults, environment names and examples."""
    lines = [
        f"usage: {program} [options]            serve",
        f"       {program} check [options]      try options and credentials, then end",
        f"       {program} inspect [ID] | sweep [--yes] | release ID   speak to the running one",
        "",
        summary,
        "",
        "Examples:",
        f"  {program} --addr=127.0.0.1:9001 --use-fake-backend --seed-count=32",
        f"  {program} check --use-fake-backend --output json",
        f"  {program} inspect --state=state.db",
        f"  {program} sweep --state=state.db --yes",
        "",
        "Options come from flags, then the environment, then --config FILE (YAML, same keys).",
        "",
        "  --config FILE",
        "  --version",
        "  --help",
    ]
    for name, opt in described(model):
        field = model.model_fields[name]
        spellings = ", ".join(f"--{s}" for s in (name.replace("_", "-"), *opt.aliases))
        lines.append(f"  {spellings}")
        environment = " ".join((PREFIX + name.upper(), *opt.env))
        facts = [f"default: {default_text(field, opt)}", f"env: {environment}"]
        if opt.example:
            facts.append(f"example: {opt.example}")
        if opt.secret:
            facts.append(f"or --{name.replace('_', '-')}-file PATH")
        for text in (opt.help, "; ".join(facts)):
            lines += textwrap.wrap(text, 92, initial_indent=" " * 8, subsequent_indent=" " * 8)
    return "\n".join(lines) + "\n"


def option_table(model: type[KitOptions], only: Callable[[str], bool] = lambda name: True) -> str:
    """The options as a Markdown table."""
    rows = ["| option | default | environment | meaning |", "| --- | --- | --- | --- |"]
    for name, opt in described(model):
        if not only(name):
            continue
        flags = ", ".join(f"`--{s}`" for s in (name.replace("_", "-"), *opt.aliases))
        environment = ", ".join(f"`{n}`" for n in (PREFIX + name.upper(), *opt.env))
        default = default_text(model.model_fields[name], opt)
        rows.append(f"| {flags} | {default} | {environment} | {opt.help} |")
    return "\n".join(rows) + "\n"


def print_text(text: str) -> None:
    """Text on stdout. A reader that has seen enough (`| head`) is not an error."""
    try:
        sys.stdout.write(text.rstrip("\n") + "\n")
        sys.stdout.flush()
    except BrokenPipeError:
        # What is still buffered must not complain when the process ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
