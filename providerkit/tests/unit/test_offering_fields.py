"""The documented fields of an offering are exactly those that a file may have."""

import inspect
import re
from dataclasses import replace

import pytest

from bigfleet_providerkit import OptionError
from bigfleet_providerkit.offerings import parse
from bigfleet_providerkit.offerings.fields import MEANINGS, offering_table
from bigfleet_providerkit.process.prepare import dialect_of
from kitworld import SPEC

REQUIRED = {"instance_type": "t-4", "zone": "zone-a", "count": 1}
SAMPLES: dict[str, object] = {
    **REQUIRED, "capacity_type": "spot", "pool": "gpu", "price_usd_per_hour": 1.0,
    "interruption_probability": 0.1, "resources": {"cpu": "1", "memory": "1Gi"},
    "allocatable": {"cpu": "1", "memory": "1Gi"}, "reserve": {"cpu": "1"}, "labels": {"a": "b"},
    "taints": ["a=b:NoSchedule"], "startup_taints": ["a:NoExecute"], "image": {"amd64": "x"},
    "disk_gb": 10, "reservation": "r", "placement_group": "p", "user_data": "u", "tags": {"a": "b"},
}  # fmt: skip


def test_every_documented_field_is_read_and_every_field_that_is_read_is_documented() -> None:
    assert set(SAMPLES) == set(MEANINGS)
    dialect = dialect_of(SPEC)
    for name, value in SAMPLES.items():
        parse.parse_offering({**REQUIRED, name: value}, 1, dialect)
    source = inspect.getsource(parse)
    read = set(re.findall(r'(?:fields\.\w+|_taints)\((?:fields, )?"(\w+)"', source))
    assert read == set(MEANINGS)
    with pytest.raises(OptionError, match="unknown field 'prize'"):
        parse.parse_offering({**REQUIRED, "prize": 1}, 1, dialect)


def test_the_table_has_the_providers_own_names_and_fields() -> None:
    spec = replace(SPEC, type_names=("size",), zone_names=("zone", "region"),
                   extra_fields=("image", "vpc"))  # fmt: skip
    table = offering_table(spec)
    assert "| `instance_type`, `size` |" in table
    assert "| `zone`, `region` |" in table
    assert "bare_metal, on_demand, reserved, spot; by default on_demand" in table
    assert "| `image` | over `--image`: " in table
    assert "| `vpc` | its own, see below |" in table
