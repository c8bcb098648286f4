"""The real lab: functions, source and sink in containers of a local or remote Docker engine."""

from workbench.labs.docker.lab import DockerLab

__all__ = ["DockerLab"]
