"""A Prometheus as tests start it, with the node and process exporters that it reads."""

from __future__ import annotations

import shutil
import socket
import subprocess
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

from host_needs import PLACES

RULES = """\
groups:
  - name: tests
    interval: 1s
    rules:
      - {alert: Watchdog, expr: vector(1)}
      - {alert: DiskNearlyFull, expr: 'node_load1 >= bool 0 == 1', labels: {severity: page}}
"""
CONFIGURATION = """\
global: {{scrape_interval: 1s, evaluation_interval: 1s}}
rule_files: [{rules}]
scrape_configs:
  - job_name: node
    static_configs: [{{targets: ['127.0.0.1:{exporter}', '127.0.0.1:{processes}']}}]
"""
PROCESSES = "process_names: [{{name: served, cmdline: [start_server, '{ours}/']}}]\n"
"""The server of `running_system.py`, which reads its delay in a folder of the same worker's tests:
those of others run beside it."""
SCRAPING = """\
global: {{scrape_interval: 1s}}
scrape_configs:
  - job_name: workbench
    honor_labels: true
    static_configs: [{{targets: ['{address}']}}]
"""


@contextmanager
def a_prometheus(folder: Path, *, alerting: bool = False) -> Iterator[str]:
    """Its URL, once it has read its exporters a few times."""
    exporter, processes, port = free_port(), free_port(), free_port()
    names = folder / "processes.yml"
    names.write_text(PROCESSES.format(ours=folder.parent))
    rules = folder / "rules.yml"
    rules.write_text(RULES if alerting else "groups: []\n")
    file = folder / "prometheus.yml"
    file.write_text(CONFIGURATION.format(rules=rules, exporter=exporter, processes=processes))
    with ExitStack() as running:
        running.enter_context(
            started(
                folder,
                "prometheus-node-exporter",
                f"--web.listen-address=127.0.0.1:{exporter}",
                "--collector.disable-defaults",
                "--collector.stat",
                "--collector.cpu",
                "--collector.loadavg",
            )
        )
        running.enter_context(
            started(
                folder,
                "prometheus-process-exporter",
                f"-web.listen-address=127.0.0.1:{processes}",
                f"-config.path={names}",
            )
        )
        url = running.enter_context(prometheus_of(folder, file, port))
        for series in ("node_load1", "namedprocess_scrape_errors"):
            until(partial(has_figures, f"{url}/api/v1/query?query={series}"))
        if alerting:
            until(lambda: b"DiskNearlyFull" in read(f"{url}/api/v1/alerts"))
        yield url


@contextmanager
def scraping(folder: Path, address: str) -> Iterator[str]:
    """The URL of one that reads `/metrics` at an address every second."""
    file, port = folder / "prometheus.yml", free_port()
    file.write_text(SCRAPING.format(address=address))
    with prometheus_of(folder, file, port) as url:
        yield url


@contextmanager
def prometheus_of(folder: Path, file: Path, port: int) -> Iterator[str]:
    arguments = (
        f"--config.file={file}",
        f"--storage.tsdb.path={folder / 'data'}",
        f"--web.listen-address=127.0.0.1:{port}",
    )
    with started(folder, "prometheus", *arguments):
        url = f"http://127.0.0.1:{port}"
        until(lambda: b"Ready" in read(f"{url}/-/ready"))
        yield url


@contextmanager
def started(folder: Path, program: str, *arguments: str) -> Iterator[None]:
    path = shutil.which(program) or shutil.which(program, path=PLACES)
    assert path is not None
    with (folder / f"{program}.log").open("wb") as log:
        process = subprocess.Popen([path, *arguments], stdout=log, stderr=log, cwd=folder)
    try:
        yield
    finally:
        process.kill()
        process.wait()


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port: int = taken.getsockname()[1]
        return port


def read(url: str) -> bytes:
    try:
        with urllib.request.urlopen(url, timeout=2) as answer:
            body: bytes = answer.read()
            return body
    except OSError:
        return b""


def has_figures(query: str) -> bool:
    return b'"value"' in read(query)


def until(there: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not there():
        assert time.monotonic() < deadline, "Prometheus did not come up"
        time.sleep(0.1)
