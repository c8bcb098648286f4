"""A profile is of the host that it was made on: elsewhere its figures are marked."""

from __future__ import annotations

import os
from dataclasses import replace

from session_making import created

from workbench.engine.answers.hosts import elsewhere
from workbench.probes.host import read_cpu_model


def test_a_session_of_another_host_is_marked_and_one_of_this_host_or_of_no_host_is_not() -> None:
    facts = created().host
    assert facts is not None
    here = replace(
        facts,
        lab="docker",
        cores=os.cpu_count() or 0,
        cpu_model=read_cpu_model(),
        details={"load_average": "0.10"},
    )
    assert elsewhere("own", here) == ()
    (text,) = elsewhere("theirs", replace(here, cores=96, cpu_model="EPYC of elsewhere"))
    assert "theirs was measured on another host (96 cores, EPYC of elsewhere)" in text
    assert "its figures hold there" in text
    assert elsewhere("simulated", replace(here, lab="sim", cpu_model="simulated")) == ()
    remote = replace(here, cpu_model="x86_64", details={})
    assert elsewhere("remote", remote) == (), "of a remote engine this host tells nothing"
