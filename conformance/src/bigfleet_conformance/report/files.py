"""The four files of a report: report.json, junit.xml, badge.json, report.html."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

from bigfleet_conformance.registry import Area
from bigfleet_conformance.report.html import page

COLOURS = {"CERTIFIED": "green", "INCOMPLETE": "yellow", "FAILED": "red"}
NAMES = ("report.json", "junit.xml", "badge.json", "report.html")


def write(document: Mapping[str, Any], folder: Path) -> None:
    """Write all four."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in texts(document).items():
        (folder / name).write_text(text, encoding="utf-8")


def texts(document: Mapping[str, Any]) -> dict[str, str]:
    """All four as text, by name."""
    return {
        "report.json": json.dumps(document, indent=2, ensure_ascii=True) + "\n",
        "junit.xml": junit(document),
        "badge.json": json.dumps(badge(document), indent=2) + "\n",
        "report.html": page(document),
    }


def badge(document: Mapping[str, Any]) -> dict[str, Any]:
    """For a page that shows badges."""
    summary, outcome = document["summary"], document["verdict"]
    message = f"{outcome} ({summary['passed']}/{summary['total_behaviors']})"
    if document["scope"] == "base":
        message += " base"
    return {
        "schemaVersion": 1,
        "label": "bigfleet conformance",
        "message": message,
        "color": COLOURS[outcome],
    }


def junit(document: Mapping[str, Any]) -> str:
    """For test dashboards: a suite for the baseline and one for each area."""
    root = ET.Element("testsuites", name="bigfleet conformance")
    checks = [(c["name"], "baseline", c) for c in document["baseline"]["checks"]]
    _suite(root, "baseline", checks)
    for area in Area:
        rows = [b for b in document["behaviors"] if b["area"] == area]
        cases = [(f"{b['id']} {b['title']}", b["id"], b) for b in rows if b["status"] != "not_run"]
        if cases:
            _suite(root, str(area), cases)
    ET.indent(root)
    head = '<?xml version="1.0" encoding="utf-8"?>\n'
    return head + ET.tostring(root, encoding="unicode") + "\n"


def _suite(root: ET.Element, name: str, cases: list[tuple[str, str, Mapping[str, Any]]]) -> None:
    def count(*statuses: str) -> str:
        return str(sum(case["status"] in statuses for _, _, case in cases))

    suite = ET.SubElement(
        root,
        "testsuite",
        name=name,
        tests=str(len(cases)),
        failures=count("failed"),
        errors=count("error"),
        skipped=count("skipped"),
        time=f"{sum(case['duration_s'] for _, _, case in cases):.3f}",
    )
    for title, classname, case in cases:
        element = ET.SubElement(
            suite,
            "testcase",
            name=printable(title),
            classname=f"{name}.{classname}",
            time=f"{case['duration_s']:.3f}",
        )
        tag = {"failed": "failure", "error": "error", "skipped": "skipped"}.get(case["status"])
        if tag:
            ET.SubElement(element, tag, message=printable(case["reason"]))


def printable(text: str) -> str:
    """Text without the characters that XML does not have."""
    return "".join(c if c in "\t\n" or ord(c) >= 0x20 else f"\\x{ord(c):02x}" for c in text)
