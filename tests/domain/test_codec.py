"""The one JSON codec: what goes in comes out, what does not fit is named."""

from __future__ import annotations

import math
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import pytest

from workbench.domain import codec, events
from workbench.domain.errors import BY_NAME, DescriptorError, LabError, Mistake, WorkbenchError
from workbench.domain.topology import Node, Parallel, Series, Target, Vnf


def example(hint: Any) -> Any:
    """A value of a type hint with nothing left at its default, so that no field can get lost."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Literal:
        return arguments[-1]
    if origin in (Union, UnionType):
        return example(next(a for a in arguments if a is not NoneType))
    if origin is tuple:
        kinds = arguments[:1] * 2 if arguments[-1] is Ellipsis else arguments
        return tuple(example(kind) for kind in kinds)
    if origin is list:
        return [example(arguments[0])]
    if origin in (Mapping, dict):
        return {example(arguments[0]): example(arguments[1])}
    if hint in PLAIN:
        return PLAIN[hint]
    hints = get_type_hints(hint)
    names = [field.name for field in fields(hint)] if is_dataclass(hint) else hint.__struct_fields__
    return hint(**{name: example(hints[name]) for name in names})


PLAIN = {str: "a ° b", int: 7, float: 2.5, bool: True, Any: ["a ° b", {"c": None}]}


@pytest.mark.parametrize("kind", get_args(events.Fact), ids=lambda kind: kind.__name__)
def test_every_event_survives_the_wire(kind: type[Any]) -> None:
    event = events.Event(seq=3, at=1.5, session="demo-1", fact=example(kind))
    line = codec.dumps(codec.event_to_plain(event))
    assert codec.event_of(line) == event
    assert codec.fact_of(kind.__name__, line) == event.fact


@pytest.mark.parametrize(
    "kind",
    codec._MESSAGES.values(),
    ids=lambda kind: kind.__name__,
)
def test_every_message_survives_the_wire(kind: type[Any]) -> None:
    message = example(kind)
    line = codec.dumps(codec.message_to_plain(message))
    assert codec.message_of(line) == message


@pytest.mark.parametrize(
    "graph",
    [
        Vnf("haproxy", "haproxy"),
        Series((Vnf("a", "x"), Parallel((Vnf("b", "y"), Series((Vnf("c", "z"),))), (0.3, 0.7)))),
    ],
)
def test_a_chain_survives_the_wire(graph: Node) -> None:
    target = Target("chain", graph)
    assert codec.from_plain(codec.loads(codec.dumps(codec.to_plain(target))), Target) == target


def test_an_event_is_flat_and_names_its_class() -> None:
    event = events.Event(1, 2.0, "s", events.Noted("info", "hello"))
    assert codec.event_to_plain(event) == {
        "seq": 1,
        "event": "Noted",
        "at": 2.0,
        "session": "s",
        "level": "info",
        "text": "hello",
    }


@pytest.mark.parametrize("unsayable", [math.nan, math.inf, -math.inf])
def test_a_number_that_json_cannot_say_is_refused(unsayable: float) -> None:
    with pytest.raises(ValueError, match="JSON cannot say"):
        codec.dumps({"value": [unsayable]})


@pytest.mark.parametrize(
    ("line", "phrase"),
    [
        (b"{", "not a message"),
        (b'{"type": "PauseRun", "session": ' + b"[" * 100_000, "not a"),
        (b'{"type": "NoSuchThing"}', "no message is called 'NoSuchThing'"),
        (b'{"type": "PauseRun"}', "missing required field `session`"),
        (b'{"type": "PauseRun", "session": 3}', "`$.session`"),
        (b'{"type": "EventPage", "events": [{"seq": 1}], "last_seq": 1}', "not an event"),
    ],
)
def test_garbage_is_answered_with_what_is_wrong(line: bytes, phrase: str) -> None:
    with pytest.raises(WorkbenchError, match=phrase.replace("$", r"\$")):
        codec.message_of(line)


@pytest.mark.parametrize("kind", sorted(BY_NAME))
def test_an_error_keeps_its_class_over_the_link(kind: str) -> None:
    error = BY_NAME[kind]("the port is taken", where="haproxy", remedy="Choose another one")
    back = codec.error_of(codec.failed(error))
    assert type(back) is type(error)
    assert str(back) == "haproxy: the port is taken. Choose another one."
    assert back.exit_code == error.exit_code


def test_mistakes_keep_their_places_over_the_link() -> None:
    error = DescriptorError([Mistake("x.yaml", 3, 5, "load.kind", "must be open or closed")])
    back = codec.error_of(codec.failed(error))
    assert isinstance(back, DescriptorError)
    assert str(back) == "x.yaml:3:5: load.kind: must be open or closed"


def test_errors_survive_a_pipe_between_processes() -> None:
    import pickle

    error = pickle.loads(pickle.dumps(LabError("gone", where="engine", remedy="Start it")))
    assert (error.what, error.where, error.remedy) == ("gone", "engine", "Start it")


def test_an_error_of_a_class_of_one_side_crosses_as_its_base() -> None:
    class WorkerLost(LabError):
        """Known to the engine alone."""

    back = codec.error_of(codec.failed(WorkerLost("it died")))
    assert type(back) is LabError
    assert back.exit_code == LabError.exit_code


READ_BY_MANY = """
import sys, threading
from concurrent.futures import ThreadPoolExecutor
from workbench.domain import codec
from workbench.domain.errors import WorkbenchError

sys.setswitchinterval(1e-6)
start = threading.Barrier(8)

def read(_):
    start.wait()
    for name, kind in codec._FACTS.items():
        for asked in (lambda: codec.from_plain({}, kind), lambda: codec.fact_of(name, b"{}")):
            try:
                asked()
            except WorkbenchError:
                pass

with ThreadPoolExecutor(8) as pool:
    list(pool.map(read, range(8)))
"""


def test_threads_may_read_the_first_of_a_kind_at_the_same_time() -> None:
    """In processes of their own: what goes wrong there ends them (four of six did)."""
    for _ in range(4):
        done = subprocess.run([sys.executable, "-c", READ_BY_MANY], check=False)
        assert done.returncode == 0
