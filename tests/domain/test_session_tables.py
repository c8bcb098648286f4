"""What a session says of where its functions saturate: nowhere yet, or so far that they fall."""

from __future__ import annotations

from dataclasses import replace

from session_making import campaign

from workbench.cli.session_words import explain
from workbench.domain.configurations import ConfigurationView
from workbench.domain.profiles import Breakpoint
from workbench.domain.projection import SessionView
from workbench.tui import present
from workbench.tui.present import Shown
from workbench.tui.screens.live import live_rows


def view_of(*found: Breakpoint) -> SessionView:
    """Of the first configurations of haproxy, a capacity each."""
    known = campaign()
    shown = []
    for configuration, one in zip(known.configurations(known.targets[0]), found, strict=False):
        view = ConfigurationView("haproxy", configuration)
        view.breakpoints = (one,)
        shown.append(view)
    return SessionView("t", campaign=known, configurations=shown)


def live_line(view: SessionView) -> str:
    chosen = present.ViewChoice(view.configurations[0].key)
    return "".join(words for words, _ in live_rows.breakpoints(Shown(view), chosen, 120))


def test_a_load_that_never_saturates_says_which_was_the_highest() -> None:
    configuration = campaign().configurations(campaign().targets[0])[0]
    nowhere = Breakpoint(
        "haproxy", configuration, "capacity", "throughput_rps", "none_in_range",
        note="no saturation up to 800/s",
    )  # fmt: skip
    view = view_of(nowhere)
    says = "no saturation up to 800/s (1 of 1 configuration): only a higher load tells"
    assert f"  {says}" in explain(view)
    assert live_line(view) == " breakpoints capacity: no saturation up to 800/s"
    found = Breakpoint(
        "haproxy", configuration, "capacity", "throughput_rps", "found", 400.0, 390.0, 410.0
    )
    assert "higher load" not in explain(view_of(found))


def test_a_collapse_is_told_by_show_and_live_with_its_depth() -> None:
    configuration = campaign().configurations(campaign().targets[0])[0]
    note = "17.5/s are left of 66/s at 118, 27% [22%, 32%]; no recovery up to 233"
    view = view_of(
        Breakpoint(
            "haproxy", configuration, "collapse", "throughput_rps", "found", 175.5, 118.0, 233.0,
            note,
        )
    )  # fmt: skip
    assert f"  collapse at haproxy 0.125 vCPU: {note}" in explain(view)
    assert "collapse 176 [118–233]" in live_line(view)


def test_configurations_that_differ_in_their_workload_alone_are_told_apart() -> None:
    (first, *_) = campaign().configurations(campaign().targets[0])
    views = [
        ConfigurationView("haproxy", replace(first, workload={"filesize_bytes": size}))
        for size in (10_000.0, 100_000.0)
    ]
    text = explain(SessionView("t", campaign=campaign(), configurations=views))
    assert "haproxy 0.125 vCPU, filesize_bytes=10000 " in text
    assert "haproxy 0.125 vCPU, filesize_bytes=100000 " in text
    alone = explain(SessionView("t", campaign=campaign(), configurations=views[:1]))
    assert "filesize_bytes" not in alone.split("configuration", 1)[1]
