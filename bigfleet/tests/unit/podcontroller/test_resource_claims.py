"""Devices of claims as amounts of resources, and the settings that map classes to resources."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bigfleet.observe.settings import SettingsError
from bigfleet.podcontroller.errors import UnsupportedClaimError
from bigfleet.podcontroller.pods import ClaimSpec
from bigfleet.podcontroller.resource_claims import count_devices, device_classes
from bigfleet.podcontroller.settings import PodControllerSettings
from kubeobjects import claim_spec, exactly, read

GPU, NIC = "gpu.example.com", "nic.example.com"
CLASSES = {GPU: "nvidia.com/gpu", "mig.example.com": "nvidia.com/gpu", NIC: "example.com/nic"}
Document = dict[str, Any]


def first(*alternatives: tuple[str, int]) -> Document:
    return {
        "firstAvailable": [
            {"name": f"a-{number}", "deviceClassName": name, "count": count}
            for number, (name, count) in enumerate(alternatives)
        ]
    }


def counted(*requests: Document) -> dict[str, int]:
    spec = read(ClaimSpec, claim_spec(*requests))
    return dict(count_devices(spec, CLASSES, "ResourceClaim c"))


@pytest.mark.parametrize(
    ("requests", "amounts"),
    [
        ([exactly()], {"nvidia.com/gpu": 1000}),
        ([exactly(count=4, allocationMode="ExactCount")], {"nvidia.com/gpu": 4000}),
        ([exactly(count=2), exactly("mig.example.com", count=3)], {"nvidia.com/gpu": 5000}),
        ([exactly(count=2), exactly(NIC)], {"nvidia.com/gpu": 2000, "example.com/nic": 1000}),
        ([first((GPU, 1), ("mig.example.com", 2))], {"nvidia.com/gpu": 2000}),
        ([first((GPU, 3)), exactly(NIC)], {"nvidia.com/gpu": 3000, "example.com/nic": 1000}),
        ([], {}),
    ],
)
def test_devices_are_counted_by_the_resource_of_their_class(
    requests: list[Document], amounts: dict[str, int]
) -> None:
    assert counted(*requests) == amounts


@pytest.mark.parametrize(
    ("request_", "words"),
    [
        (exactly("other.example.com"), "DeviceClass other.example.com, which is not mapped"),
        (exactly("other.example.com"), "--device-class-mappings other.example.com=RESOURCE"),
        (exactly("other.example.com"), "deviceClassMappings in its chart"),
        (exactly(allocationMode="All"), "DeviceClass gpu.example.com with allocationMode All"),
        (exactly(allocationMode="Some"), "allocationMode Some"),
        (exactly(adminAccess=True), "admin access to devices of DeviceClass gpu.example.com"),
        (exactly(count=33), "asks for 33 devices"),
        (exactly(count=0), "asks for 0 devices"),
        (first((GPU, 1), (NIC, 1)), "different resources"),
        (first((GPU, 1), (NIC, 1)), f"{GPU}=nvidia.com/gpu, {NIC}=example.com/nic"),
        (first((GPU, 1), ("other.example.com", 1)), "other.example.com, which is not mapped"),
        ({}, "neither exactly nor firstAvailable"),
    ],
)
def test_what_is_not_a_number_of_a_resource_is_refused_with_the_remedy(
    request_: Document, words: str
) -> None:
    with pytest.raises(UnsupportedClaimError) as refused:
        counted(exactly(), request_)
    assert words in str(refused.value)
    assert str(refused.value).startswith("No capacity is requested for this Pod: ")


def test_mappings_come_by_flag_variable_and_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = {GPU: "nvidia.com/gpu", NIC: "example.com/nic"}
    texts = [f"{name}={resource}" for name, resource in wanted.items()]

    def loaded(flags: dict[str, object], file: Path | None = None) -> dict[str, str]:
        return device_classes(PodControllerSettings.load(flags, file).device_class_mappings)

    assert loaded({}) == {}
    assert loaded({"device_class_mappings": texts}) == wanted
    file = tmp_path / "settings.yaml"
    lines = [f"  {name}: {resource}" for name, resource in wanted.items()]
    file.write_text("\n".join(["device_class_mappings:", *lines]))
    assert loaded({}, file) == wanted
    monkeypatch.setenv("BIGFLEET_DEVICE_CLASS_MAPPINGS", ",".join(texts))
    assert loaded({}) == wanted


@pytest.mark.parametrize(
    ("texts", "words"),
    [
        (["gpu.example.com"], "'gpu.example.com' names no resource"),
        (["=nvidia.com/gpu"], "names no DeviceClass"),
        (["GPU=nvidia.com/gpu"], "'GPU=nvidia.com/gpu' names no DeviceClass"),
        (["gpu.example.com=nvidia.com/gpu/x"], "names no resource"),
        (["gpu.example.com=nvidia.com/-"], "names no resource"),
        ([f"{'a' * 64}.com=x"], "names no DeviceClass"),
        (["gpu.example.com=a/b", "gpu.example.com=a/c"], "mapped to a/b and to a/c"),
    ],
)
def test_a_wrong_mapping_is_refused_by_its_text(texts: list[str], words: str) -> None:
    with pytest.raises(SettingsError, match="--device-class-mappings") as refused:
        PodControllerSettings.load({"device_class_mappings": texts})
    assert words in str(refused.value)
