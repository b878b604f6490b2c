"""What can be said of the charts without helm: copies, values, schemas, flags and alerts."""

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

import chart_schemas
import charts

NAMES = charts.chart_names()
REFERENCE = re.compile(r"\.Values\.([A-Za-z.]+[A-Za-z])")
FLAG = re.compile(r"^\s*- (?:\{\{ (?:printf|ternary) )?\"?--([a-z-]+)", re.MULTILINE)
METRIC = re.compile(r"bigfleet_[a-z_]+")
ROOT = charts.ROOT


def values_of(name: str) -> dict[str, Any]:
    loaded = yaml.safe_load((charts.CHARTS / name / "values.yaml").read_text("utf-8"))
    assert isinstance(loaded, dict)
    return loaded


def schema_of(name: str) -> dict[str, Any]:
    loaded = json.loads((charts.CHARTS / name / "values.schema.json").read_text("utf-8"))
    assert isinstance(loaded, dict)
    return loaded


def merged(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """As helm merges values."""
    result = dict(base)
    for key, value in over.items():
        inner = result.get(key)
        both = isinstance(inner, dict) and isinstance(value, dict)
        result[key] = merged(inner, value) if both else value  # type: ignore[arg-type]
    return result


def templates_of(name: str) -> str:
    folders = [charts.CHARTS / name / "templates"]
    if name.startswith("bigfleet-provider-"):
        folders.append(charts.CHARTS / charts.LIBRARY / "templates")
    files = [path for folder in folders for path in sorted(folder.rglob("*")) if path.is_file()]
    return "\n".join(path.read_text("utf-8") for path in files)


def leaves(values: Mapping[str, Any], prefix: str = "") -> Iterator[str]:
    for key, value in values.items():
        open_map = key in chart_schemas.OPEN or key == "config"
        if isinstance(value, dict) and value and not open_map:
            yield from leaves(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}"


def test_generated_files_are_up_to_date() -> None:
    old = [str(path.relative_to(ROOT)) for path in charts.stale()]
    assert old == [], "run make charts"


@pytest.mark.parametrize("name", NAMES)
def test_defaults_and_examples_fit_the_schema(name: str) -> None:
    schema = schema_of(name)
    jsonschema.Draft7Validator.check_schema(schema)
    jsonschema.validate(values_of(name), schema)
    examples = charts.examples(name)
    assert examples
    for example in examples:
        told = yaml.safe_load(example.read_text("utf-8"))
        jsonschema.validate(merged(values_of(name), told), schema)


@pytest.mark.parametrize(
    ("name", "wrong", "word"),
    [
        ("bigfleet", {"coordinator": {"replicas": 2}}, "2 is not one of"),
        ("bigfleet", {"coordinater": {}}, "coordinater"),
        ("bigfleet", {"shard": {"config": {"reclaim-hald": "1s"}}}, "reclaim-hald"),
        ("bigfleet", {"shard": {"config": {"shard-id": "x"}}}, "shard-id"),
        ("bigfleet", {"shard": {"provider": {"addr": "nowhere"}}}, "nowhere"),
        ("bigfleet", {"shard": {"provider": {"addr": ["a:1", "a:1"]}}}, "a:1"),
        ("bigfleet", {"shard": {"provider": {"addr": "a:1,b:2"}}}, "a:1,b:2"),
        ("bigfleet", {"coordinator": {"bootstrap": "yes"}}, "yes"),
        ("bigfleet-operator", {"clusterId": "x"}, "clusterId"),
        ("bigfleet-operator", {"shardAddress": "nowhere"}, "nowhere"),
        ("bigfleet-unschedulable-pod-controller", {"replicas": 0}, "0 is less than"),
        (
            "bigfleet-unschedulable-pod-controller",
            {"priorityClassDefaults": {"a": {"penalty": "1"}}},
            "penalty",
        ),
        (
            "bigfleet-unschedulable-pod-controller",
            {"deviceClassMappings": {"gpu.example.com": "a/b/c"}},
            "a/b/c",
        ),
        (
            "bigfleet-unschedulable-pod-controller",
            {"deviceClassMappings": {"GPU": "nvidia.com/gpu"}},
            "GPU",
        ),
        ("bigfleet-provider-template", {"config": {"seed-cuont": 1}}, "seed-cuont"),
        ("bigfleet-provider-kwok", {"state": {"accessMode": "ReadWriteMany"}}, "ReadWriteMany"),
    ],
)
def test_a_wrong_value_is_refused_by_name(name: str, wrong: dict[str, Any], word: str) -> None:
    with pytest.raises(jsonschema.ValidationError, match=word):
        jsonschema.validate(merged(values_of(name), wrong), schema_of(name))


@pytest.mark.parametrize("address", ["shard:7780", "10.0.0.1:7780", "[fd00::1]:7780"])
def test_every_kind_of_address_is_taken(address: str) -> None:
    for name, told in (
        ("bigfleet-operator", {"shardAddress": address}),
        ("bigfleet", {"shard": {"provider": {"addr": [f"a={address}@eu", address]}}}),
    ):
        jsonschema.validate(merged(values_of(name), told), schema_of(name))


@pytest.mark.parametrize("name", NAMES)
def test_every_value_is_used_and_every_used_value_is_there(name: str) -> None:
    text = templates_of(name)
    used = set(REFERENCE.findall(text)) - {"replicaCount"}
    known = set(leaves(values_of(name)))
    for path in used:
        assert any(leaf == path or leaf.startswith(f"{path}.") for leaf in known), path
    for leaf in known:
        parts = leaf.split(".")
        ways = {".".join(parts[:count]) for count in range(1, len(parts) + 1)}
        assert ways & used, f"{leaf} is used by no template"


@pytest.mark.parametrize(
    ("part", "template"),
    [
        ("coordinator", "bigfleet/templates/coordinator/statefulset.yaml"),
        ("shard", "bigfleet/templates/shard/statefulset.yaml"),
        ("operator", "bigfleet-operator/templates/deployment.yaml"),
        ("pod-controller", "bigfleet-unschedulable-pod-controller/templates/deployment.yaml"),
    ],
)
def test_flags_in_the_templates_are_flags_of_the_command(part: str, template: str) -> None:
    text = (charts.CHARTS / template).read_text("utf-8")
    flags = set(FLAG.findall(text))
    known = chart_schemas.COMPONENTS[part]()
    assert flags
    assert flags <= known
    assert flags <= chart_schemas.SET_BY_CHART[part] <= known


def test_flags_of_the_library_chart_are_options_of_a_provider() -> None:
    text = (charts.CHARTS / charts.LIBRARY / "templates" / "_deployment.tpl").read_text("utf-8")
    agent = {flag for flag in FLAG.findall(text) if flag.startswith("bootstrap-")}
    flags = set(FLAG.findall(text)) - agent
    assert flags <= chart_schemas.provider_options("template")
    assert set(FLAG.findall(text)) <= chart_schemas.SET_BY_CHART["provider"]
    page = (ROOT / "providerkit/src/bigfleet_providerkit/hostexec/options.py").read_text("utf-8")
    assert all(flag.replace("-", "_") in page for flag in agent)


def test_every_chart_tells_what_comes_next() -> None:
    for name in NAMES:
        assert (charts.CHARTS / name / "templates" / "NOTES.txt").read_text("utf-8").strip()


def test_provider_charts_are_values_schema_and_notes_only() -> None:
    for name in NAMES:
        if not name.startswith("bigfleet-provider-"):
            continue
        own = {path.name for path in (charts.CHARTS / name / "templates").iterdir()}
        assert own == {"all.yaml", "NOTES.txt"}
        first = values_of("bigfleet-provider-template")
        assert values_of(name).keys() == first.keys()


def alert_rules() -> list[dict[str, Any]]:
    (group,) = yaml.safe_load((charts.CHARTS / "bigfleet/files/alerts.yaml").read_text("utf-8"))
    assert group["name"] == "bigfleet"
    rules = group["rules"]
    assert isinstance(rules, list)
    return rules


def test_alerts_are_whole_and_have_names_of_their_own() -> None:
    rules = alert_rules()
    assert len({rule["alert"] for rule in rules}) == len(rules)
    for rule in rules:
        assert rule["alert"].startswith("BigFleet")
        assert rule["labels"]["severity"] in ("page", "warn")
        assert re.fullmatch(r"\d+[smh]", rule["for"])
        assert rule["annotations"]["summary"]
        assert rule["annotations"]["runbook"]


def test_alerts_ask_for_metrics_that_exist() -> None:
    sources = [ROOT / "bigfleet/src/bigfleet", ROOT / "providerkit/src/bigfleet_providerkit"]
    code = "\n".join(path.read_text("utf-8") for each in sources for path in each.rglob("*.py"))
    prefixes = "shard|coordinator|operator|unschedulable_pod_controller|provider|tls"
    for rule in alert_rules():
        for metric in METRIC.findall(rule["expr"]):
            found = re.fullmatch(rf"bigfleet_({prefixes})_(\w+?)(_bucket)?", metric)
            assert found, metric
            # Some names are put together: `reconcile` and `_last_success_timestamp_seconds`.
            assert found[2] in code or f"_{found[2].partition('_')[2]}" in code, metric


def test_dashboards_are_json_with_an_uid() -> None:
    for path in (charts.CHARTS / "bigfleet" / "files" / "dashboards").glob("*.json"):
        assert json.loads(path.read_text("utf-8"))["uid"]


PUBLISHED_BY_OTHERS = {"gcr.io/etcd-development/etcd"}
"""Images that we do not build, by the name under which their makers publish them."""


def test_images_of_ours_have_plain_names_and_others_the_name_they_are_published_under() -> None:
    found = {
        repository
        for name in NAMES
        for path in (charts.CHARTS / name).rglob("values.yaml")
        for repository in re.findall(r"repository: (\S+)", path.read_text("utf-8"))
    }
    assert {each for each in found if "." in Path(each).parts[0]} == PUBLISHED_BY_OTHERS
    assert "etcd" not in found
