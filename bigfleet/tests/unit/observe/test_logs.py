"""Log lines: their shape, their keys, and that a line stays a line."""

import io
import json
import logging
import re

import pytest
import structlog

from bigfleet.observe.logs import LogSettingsError, configure_logs

log = logging.getLogger("bigfleet.shard.example")


def written(form: str = "text", level: str = "info") -> io.StringIO:
    file = io.StringIO()
    configure_logs(form, level, file)
    return file


def test_structlogs_loggers_write_the_same_lines() -> None:
    file = written()
    structlog.get_logger().warning("watch interrupted", resource="pods", name="x", again_in=0.5)
    structlog.get_logger().debug("no reader wants this")
    assert re.fullmatch(
        r"\S+ WARN watch interrupted resource=pods again_in=0.5 name_=x\n", file.getvalue()
    )
    structlog.reset_defaults()


def test_a_line_is_time_level_message_and_keys() -> None:
    file = written()
    log.warning("shortfalls detected", extra={"count": 3, "top_fingerprints": ["a", "b"]})
    line = file.getvalue()
    assert re.fullmatch(
        r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z WARN shortfalls detected "
        r"count=3 top_fingerprints=a,b\n",
        line,
    )


@pytest.mark.parametrize("form", ["text", "json"])
def test_uvicorns_message_is_said_once_and_without_colours(form: str) -> None:
    file = written(form)
    said = "Started server process [%d]"
    log.info(said, 7, extra={"color_message": "Started server process [\x1b[36m%d\x1b[0m]"})
    assert "Started server process [7]" in file.getvalue()
    assert "color_message" not in file.getvalue()
    assert "36m" not in file.getvalue()


def test_the_same_words_and_keys_are_in_json() -> None:
    file = written("json")
    log.info("operator session opened", extra={"cluster": "c-1", "rows": 7})
    document = json.loads(file.getvalue())
    assert document["msg"] == "operator session opened"
    assert document["level"] == "info"
    assert document["cluster"] == "c-1"
    assert document["rows"] == 7
    assert re.fullmatch(r"\d{4}-.*Z", document["time"])


def test_values_that_would_break_a_line_are_quoted() -> None:
    file = written()
    log.error("action failed", extra={"error": "two words\nand lines", "empty": "", "eq": "a=b"})
    assert 'error="two words\\nand lines" empty="" eq="a=b"' in file.getvalue()
    assert file.getvalue().count("\n") == 1


def test_arguments_of_a_message_are_put_in() -> None:
    file = written("json")
    log.info("%s of %d", "one", 2)
    assert json.loads(file.getvalue())["msg"] == "one of 2"


def test_an_exception_follows_its_line() -> None:
    file = written()
    try:
        raise ValueError("broken")
    except ValueError:
        log.exception("component exited", extra={"component": "shard"})
    head, _, rest = file.getvalue().partition("\n")
    assert head.endswith("ERROR component exited component=shard")
    assert "ValueError: broken" in rest


def test_an_exception_is_a_key_in_json() -> None:
    file = written("json")
    try:
        raise ValueError("broken")
    except ValueError:
        log.exception("component exited")
    assert "ValueError: broken" in json.loads(file.getvalue())["exception"]


def test_levels_below_the_chosen_one_are_silent() -> None:
    file = written(level="warn")
    log.info("no person reads this")
    assert file.getvalue() == ""


@pytest.mark.parametrize(("form", "level"), [("xml", "info"), ("text", "loud")])
def test_a_wrong_setting_is_named(form: str, level: str) -> None:
    with pytest.raises(LogSettingsError, match=r"xml|loud"):
        configure_logs(form, level)
