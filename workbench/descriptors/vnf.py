"""`vnfs/NAME/vnf.yaml`: a network function, a source or a sink."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from string import Template
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from workbench.descriptors.document import is_file
from workbench.descriptors.fields import (
    ContainerPath,
    Duration,
    EnvironmentValue,
    Image,
    NonEmptyText,
    Port,
    Summary,
    TextOrWholeNumber,
    VariableName,
    Vcpu,
    secret_mistake,
)
from workbench.descriptors.reading import (
    Described,
    Descriptor,
    DescriptorReading,
    Located,
    did_you_mean,
)
from workbench.descriptors.units import WorkloadName, shown
from workbench.domain import resources
from workbench.domain.topology import (
    ChangeOfSetting,
    ConfigurationFile,
    FunctionParameter,
    Passage,
    Placement,
    Readiness,
    ReadinessKind,
    Role,
    VnfTemplate,
)
from workbench.paths import portable

SimulatedKey = Literal[
    "service_us",
    "per_kb_us",
    "cv",
    "threads",
    "buffer",
    "closes",
    "connection_us",
    "split_writes",
    "delayed_ack_ms",
    "memory_mb",
    "blocks",
    "sheds",
    "alpha",
    "serial",
    "coherence",
    "stops_at",
    "steps",
    "loses_from",
    "loses_share",
    "effect_sd",
    "plateau",
    "knee_width",
    "decay",
    "recovers_below",
    "cold_factor",
]
"""Parameters of a stand-in in the simulated lab (docs/simulated-lab.md)."""
PackageName = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9+.-]+$", max_length=100)]
FileName = Annotated[str, Field(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.-]*$", max_length=100)]
PLACEHOLDERS = (
    "upstream_host",
    "upstream_port",
    "upstream_number",
    "upstream_weight",
    "port",
    "threads",
)
"""What a lab fills into `files` besides the descriptor's own `settings`."""


class FunctionParameterText(Described):
    """A setting that a campaign may vary; `$name` in `files`."""

    name: VariableName
    range: Annotated[list[int | float], Field(min_length=2, max_length=2)] | None = Field(
        None, description="Its least and largest value"
    )
    choices: Annotated[list[NonEmptyText], Field(min_length=1)] | None = Field(
        None, description="Its values, where they are names"
    )
    default: int | float | str = Field(
        union_mode="left_to_right", description="Its value where a campaign does not vary it"
    )
    whole: bool = Field(True, description="Whether only whole numbers are values")
    unit: Annotated[str, Field(max_length=20)] = ""
    change: ChangeOfSetting = Field(
        "restart", description="What another value takes: `reload` runs the function's `reload`"
    )
    summary: Summary = ""
    simulated_us: Annotated[float, Field(ge=0)] = Field(
        0.0, description="In the simulated lab: CPU of a packet or request for each unit, in us"
    )

    def mistakes(self) -> Iterator[Located]:
        if (self.range is None) == (self.choices is None):
            yield (), "needs either a range of numbers or choices"
        elif self.range is not None and not self.range[0] < self.range[1]:
            low, high = self.range
            yield ("range",), f"runs from {shown(low)} to {shown(high)}, must be [low, high]"
        elif self.choices is not None and len(set(self.choices)) < len(self.choices):
            yield ("choices",), "names one of them twice"
        else:
            try:
                self.resolved().read(self.default)
            except ValueError as error:
                yield ("default",), str(error)

    def resolved(self) -> FunctionParameter:
        low, high = self.range or (0.0, 0.0)
        return FunctionParameter(
            self.name,
            self.default if isinstance(self.default, str) else float(self.default),
            float(low),
            float(high),
            tuple(self.choices or ()),
            self.whole,
            self.unit,
            self.change,
            self.summary,
            self.simulated_us,
        )


class FileText(Described):
    """A file that is rendered into the container."""

    path: ContainerPath
    text: str = Field(
        description="$upstream_host, $upstream_port, $port, $threads and settings are filled in; "
        "$$ is a dollar sign"
    )


class ReadinessText(Described):
    """How to tell that the container serves."""

    kind: ReadinessKind = "tcp"
    path: Annotated[str, Field(pattern=r"^/")] = "/"
    command: list[NonEmptyText] = Field(default_factory=list)
    timeout: Duration = 20.0

    def mistakes(self) -> Iterator[Located]:
        if self.kind == "command" and not self.command:
            yield ("command",), "is missing; a readiness of kind command needs one"
        if self.kind != "command" and self.command:
            yield ("command",), f"is given, but the kind is {self.kind}; use kind: command"


class VnfText(Descriptor):
    """A network function, source or sink: from a Dockerfile beside it or from an image."""

    ENVIRONMENT_FIELDS: ClassVar[tuple[str, ...]] = ("environment.*",)
    TEMPLATE_FIELDS: ClassVar[tuple[str, ...]] = (
        "files.*.text",
        "command.*",
        "readiness.command.*",
        "reload.*",
        "stats.*",
    )

    kind: Literal["vnf"] = "vnf"
    summary: Summary = ""
    role: Role = "function"
    placement: Placement = "inline"
    passage: Passage = Field(
        "proxy", description="A proxy connects upstream, a router forwards packets"
    )
    build: NonEmptyText | None = Field(
        None, description="Folder with a Dockerfile, relative to this file"
    )
    image: Image | None = Field(None, description="An existing image instead of a build")
    port: Port = 8080
    command: list[NonEmptyText] = Field(
        default_factory=list, description="Program and arguments; none: the image's own"
    )
    environment: dict[VariableName, EnvironmentValue] = Field(
        default_factory=dict, description="Values may be ${NAME}; secrets must be"
    )
    settings: dict[VariableName, TextOrWholeNumber] = Field(
        default_factory=dict, description="Placeholders of `files` with their values"
    )
    files: list[FileText] = Field(default_factory=list)
    function_parameters: list[FunctionParameterText] = Field(
        default_factory=list, description="Settings that a campaign may vary"
    )
    reload: list[NonEmptyText] = Field(
        default_factory=list,
        description="Program and arguments that have it read its files again; none: it restarts",
    )
    stats: list[NonEmptyText] = Field(
        default_factory=list,
        description="Program and arguments that print `NAME VALUE` lines of what it counted",
    )
    readiness: ReadinessText = ReadinessText()
    default_vcpu: Vcpu = 1.0
    parameters: list[WorkloadName] = Field(
        default_factory=list, description="Workload parameters that a source can offer"
    )
    packages: list[PackageName] = Field(
        default_factory=list,
        description="Debian packages of its programs, for labs that run it without an image",
    )
    programs: list[FileName] = Field(
        default_factory=list, description="Files of `build` that are programs of it"
    )
    locks_memory: bool = Field(
        False, description="Whether its program keeps all its memory from being paged out"
    )
    simulated: dict[SimulatedKey, Annotated[float, Field(ge=0)]] = Field(
        default_factory=dict, description="Its stand-in in the simulated lab"
    )

    @classmethod
    def checks(cls, reading: DescriptorReading) -> Iterator[Located]:
        valid = reading.valid
        match [key for key in ("build", "image") if key in reading.document.root]:
            case []:
                yield (), "has neither build nor image; give a folder with a Dockerfile or an image"
            case [_, _]:
                yield ("image",), "is given beside build; one of them must go"
        if valid.get("build"):
            yield from _build_mistakes(valid["build"], reading.path.parent)
        for key in ("environment", "settings"):
            for name, value in valid.get(key, {}).items():
                if message := secret_mistake(name, value):
                    yield (key, name), message
        own = [parameter.name for parameter in valid.get("function_parameters", [])]
        yield from _parameter_mistakes(valid, own)
        placeholders = {*PLACEHOLDERS, *valid.get("settings", {}), *own}
        for name in valid.get("settings", {}):
            if name in PLACEHOLDERS:
                yield ("settings", name), "is what the lab fills in; choose another name"
        for index, file in enumerate(valid.get("files", [])):
            for message in _placeholder_mistakes(file.text, placeholders):
                yield ("files", index, "text"), message
        role = valid.get("role") if "role" in reading.document.root else "function"
        if role != "source" and valid.get("parameters"):
            yield ("parameters",), "are offered by a source alone; remove them or set role: source"
        if role != "function" and own:
            yield ("function_parameters",), "are of a function alone; remove them"

    def resolved(self, name: str, folder: Path) -> VnfTemplate:
        """The domain's template; `build` is what `paths.located` finds."""
        readiness = Readiness(
            self.readiness.kind,
            self.readiness.path,
            tuple(self.readiness.command),
            self.readiness.timeout,
        )
        return VnfTemplate(
            name=name,
            role=self.role,
            placement=self.placement,
            passage=self.passage,
            summary=self.summary,
            build=portable((folder / self.build).resolve()) if self.build else "",
            image=self.image or "",
            port=self.port,
            command=tuple(self.command),
            environment=dict(self.environment),
            files=tuple(ConfigurationFile(f.path, f.text) for f in self.files),
            settings=dict(self.settings),
            readiness=readiness,
            default_vcpu=self.default_vcpu,
            function_parameters=tuple(p.resolved() for p in self.function_parameters),
            reload=tuple(self.reload),
            stats=tuple(self.stats),
            parameters=tuple(self.parameters),
            packages=tuple(self.packages),
            programs=tuple(self.programs),
            locks_memory=self.locks_memory,
            simulated={str(key): value for key, value in self.simulated.items()},
        )


def _parameter_mistakes(valid: Mapping[str, Any], names: list[str]) -> Iterator[Located]:
    taken = {*PLACEHOLDERS, *resources.by_name(), *resources.known(), resources.FLAVOR}
    for index, parameter in enumerate(valid.get("function_parameters", [])):
        here = ("function_parameters", index)
        name = parameter.name
        if name in taken or name in valid.get("settings", {}):
            yield (*here, "name"), f"is {shown(name)}, which has a meaning already; choose another"
        elif name in names[:index]:
            yield (*here, "name"), f"is {shown(name)} again"
        elif not any(name in Template(f.text).get_identifiers() for f in valid.get("files", [])):
            yield (*here, "name"), f"is {shown(name)}, and no file holds {shown('$' + name)}"
        if parameter.change == "reload" and not valid.get("reload"):
            yield (
                (*here, "change"),
                "is reload, but the function has none; give `reload` a program, or write restart",
            )


def _build_mistakes(build: str, folder: Path) -> Iterator[Located]:
    if Path(build).is_absolute() or ".." in Path(build).parts:
        yield ("build",), f"is {shown(build)}, must be a folder in the descriptor's own folder"
    elif not is_file(folder / build / "Dockerfile"):
        yield ("build",), f"is {shown(build)}, but no Dockerfile is there"


def _placeholder_mistakes(text: str, known: set[str]) -> Iterator[str]:
    for match in Template.pattern.finditer(text):
        if match["invalid"] is not None:
            line = text.count("\n", 0, match.start()) + 1
            yield f"has a $ without a name in its line {line}; write $$ for a dollar sign"
        name = match["named"] or match["braced"]
        if name and name not in known:
            yield (
                f"uses {shown('$' + name)}, which nothing fills in; {did_you_mean(name, known)}; "
                f"write $$ for a dollar sign"
            )
