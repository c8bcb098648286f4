"""What is wrong between the functions of `attach:` and the rest of their campaign."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from workbench.descriptors.attach_text import FILE_SIZE, AttachText, guard_of, lab_of, load_of
from workbench.descriptors.composition import node_of
from workbench.descriptors.document import FieldPath
from workbench.descriptors.load_job_text import READ_WHOLE
from workbench.descriptors.reading import DescriptorReading, Located
from workbench.descriptors.target_text import TargetText
from workbench.descriptors.units import PER_SECOND, PRIMARIES, shown
from workbench.descriptors.workload_text import PrimaryText
from workbench.domain.attaching import ATTACHING
from workbench.domain.topology import Target


def attach_mistakes(reading: DescriptorReading, primary: PrimaryText | None) -> Iterator[Located]:
    """What is wrong between the attached functions and the rest of the campaign."""
    attach: Mapping[str, AttachText] = reading.valid.get("attach", {})
    lab = reading.valid.get("lab")
    if not attach:
        if lab in ATTACHING:
            yield ("lab",), f"is {lab}, and `attach` names no function that runs already"
        return
    if lab not in (None, lab_of(attach)):
        yield ("lab",), f"is {lab}, but `attach` names functions that run already; leave it out"
    yield from _cluster_mistakes(attach)
    if primary is not None:
        if primary.name == "packet_rate":
            yield (
                ("primary_workload_parameter", "name"),
                "is packet_rate; functions that run already are loaded with requests alone",
            )
            return
        yield from _bound_mistakes(attach, primary)
        yield from _job_mistakes(reading, attach, primary)
    for index, target in enumerate(reading.valid.get("targets", ())):
        yield from _target_mistakes(reading, attach, index, target, primary)


def _cluster_mistakes(attach: Mapping[str, AttachText]) -> Iterator[Located]:
    pods = [name for name, text in attach.items() if text.pod is not None]
    for name, text in attach.items():
        if pods and text.pod is None:
            yield (
                ("attach", name),
                f"is no pod and {pods[0]} is one; a campaign has one kind",
            )
        elif pods and text.context != attach[pods[0]].context:
            yield ("attach", name), f"is in another cluster than {pods[0]} (context)"


def _job_mistakes(
    reading: DescriptorReading, attach: Mapping[str, AttachText], primary: PrimaryText
) -> Iterator[Located]:
    """What a Job's log cannot tell: only a generator that prints each request is read from it."""
    jobs = [name for name, text in attach.items() if text.job is not None]
    if not jobs:
        return
    load = reading.valid.get("load")
    able = " or ".join(READ_WHOLE)
    if primary.name != "concurrent":
        yield (
            ("attach", jobs[0], "job"),
            f"sends by {able}, which is a closed loop; {primary.name} is not: vary concurrent",
        )
    elif load is not None and load.generator not in (None, *READ_WHOLE):
        yield (
            ("load", "generator"),
            f"is {load.generator}, whose records a Job's log does not hold; allowed: {able}",
        )


def _bound_mistakes(attach: Mapping[str, AttachText], primary: PrimaryText) -> Iterator[Located]:
    for name, text in attach.items():
        if text.max_load is not None:
            try:
                load_of(text.max_load, primary.name)
            except ValueError as error:
                yield ("attach", name, "max_load"), str(error)
        try:
            guard_of(text.guard, primary.name)
        except ValueError as error:
            yield ("attach", name, "guard"), str(error)


def _target_mistakes(
    reading: DescriptorReading,
    attach: Mapping[str, AttachText],
    index: int,
    target: TargetText,
    primary: PrimaryText | None,
) -> Iterator[Located]:
    here: FieldPath = ("targets", index)
    node = node_of(target, reading.library)
    vnfs = Target("", node).vnfs if node else ()
    for vnf in vnfs:
        if vnf.template not in attach or vnf.name != vnf.template:
            yield here, f"has {shown(vnf.name)}, which `attach` does not name as it stands there"
            return
    if not vnfs:
        return
    entry = attach[vnfs[0].name]
    if entry.url is None:
        yield here, f"begins with {vnfs[0].name}, which has no url: no load can enter it"
        return
    for place, parameter in enumerate(target.resource_parameters):
        name = parameter.vnf or vnfs[0].name
        at = (*here, "resource_parameters", place)
        if name in attach and attach[name].means == "fixed":
            yield at, f"sets {parameter.name} of {name}, whose resources are fixed"
        elif name in attach and attach[name].means == "resize" and parameter.name != "vcpu":
            yield (*at, "name"), f"is {parameter.name}; of a pod, vcpu alone is changed in place"
        elif name in attach and attach[name].means == "schedinfo" and parameter.name != "vcpu":
            yield (*at, "name"), f"is {parameter.name}; of a domain, vcpu alone is changed"
        elif name in attach and _lacks_command(attach[name], parameter.name):
            yield at, f"sets {parameter.name} of {name}, which has no command for it"
        elif parameter.name not in ("vcpu", "memory"):
            yield (*at, "name"), f"is {parameter.name}; allowed here: vcpu, memory"
    if reading.valid.get("workload_parameters") and FILE_SIZE not in entry.url:
        yield (
            ("workload_parameters",),
            f"say what is asked for, and the url of {vnfs[0].name} has no {FILE_SIZE} in it",
        )
    if reading.valid.get("initialization"):
        yield ("initialization",), "runs commands in functions, and nothing is run in attached ones"
    yield from _range_mistakes(attach, here, target, primary, [vnf.name for vnf in vnfs])


def _lacks_command(text: AttachText, resource: str) -> bool:
    return text.means == "command" and resource not in (text.commands or {})


def _range_mistakes(
    attach: Mapping[str, AttachText],
    here: FieldPath,
    target: TargetText,
    primary: PrimaryText | None,
    names: list[str],
) -> Iterator[Located]:
    """Load that may never be passed, and a range that would."""
    if primary is None:
        return
    own = target.primary_workload_parameter
    given = (own and own.range) or primary.range
    try:
        high = PRIMARIES[primary.name].read(given[-1])
        bounds = {
            name: load_of(attach[name].max_load, primary.name)
            for name in names
            if attach[name].max_load is not None
        }
    except ValueError:
        return
    for name, most in bounds.items():
        if high > most:
            unit = "/s" if PRIMARIES[primary.name] is PER_SECOND else ""
            yield (
                here,
                f"is loaded with up to {high:g}{unit}, and {name} with more than its max_load of "
                f"{most:g}{unit} never",
            )
