"""What a command computes beside its loop: its answer, its error, and that Ctrl-C does not wait."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

from workbench.cli.context import INTERRUPTED_SAID, execute, learned_here
from workbench.computing import computed

ENDLESS = """
import signal, time
signal.signal(signal.SIGINT, signal.default_int_handler)  # it is ignored in what a script starts
from workbench.cli import context, main
from workbench.computing import computed
def endless():
    print("computing", flush=True)
    time.sleep(600)
import workbench.cli.app as app
app.app = lambda: context.execute(computed(endless))
main()
"""


def test_its_answer_and_its_error_are_those_of_what_was_computed() -> None:
    assert execute(computed(divmod, 7, 3)) == (2, 1)
    with pytest.raises(ZeroDivisionError):
        execute(computed(divmod, 7, 0))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_who_interrupts_does_not_wait_until_it_has_ended(number: signal.Signals) -> None:
    arguments = [sys.executable, "-c", ENDLESS]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as running:
        try:
            assert running.stdout is not None
            assert running.stdout.readline() == b"computing\n"
            running.send_signal(number)
            said = running.communicate(timeout=60)[1]
        finally:
            running.kill()
    assert (running.returncode, said) == (130, b"")


TWICE = """
import asyncio, signal, sys, threading
signal.signal(signal.SIGINT, signal.default_int_handler)  # it is ignored in what a script starts
from workbench.cli import context, main
from workbench.computing import computed
def endless():
    print("learning", flush=True)
    threading.Event().wait()
async def learning():
    try:
        with context.interruptible():
            await computed(endless)
    finally:
        print("ending", flush=True)
        await computed(sys.stdin.readline)
import workbench.cli.app as app
app.app = lambda: context.execute(learning())
main()
"""


def test_who_interrupts_twice_gets_one_sentence_and_no_stack_trace() -> None:
    """Pressed again while what was begun is ended, as often as one likes."""
    arguments = [sys.executable, "-c", TWICE]
    pipe = subprocess.PIPE
    with subprocess.Popen(arguments, stdin=pipe, stdout=pipe, stderr=pipe) as running:
        try:
            assert running.stdout is not None
            assert running.stdout.readline() == b"learning\n"
            running.send_signal(signal.SIGINT)
            assert running.stdout.readline() == b"ending\n"
            running.send_signal(signal.SIGINT)
            running.send_signal(signal.SIGINT)
            said = running.communicate(b"go on\n", timeout=60)[1]
        finally:
            running.kill()
    assert (running.returncode, said.decode()) == (130, f"{INTERRUPTED_SAID}\n")


def test_what_is_learned_is_answered_and_ctrl_c_means_again_what_it_did() -> None:
    before = signal.getsignal(signal.SIGINT)
    assert learned_here(divmod, 7, 3) == (2, 1)
    assert signal.getsignal(signal.SIGINT) is before


CANCELLED = """
import asyncio, signal
signal.signal(signal.SIGINT, signal.default_int_handler)
from workbench.cli import context, main
async def endless():
    print("waiting", flush=True)
    try:
        await asyncio.Event().wait()
    finally:
        print("ending", flush=True)
        await asyncio.sleep(60)
import workbench.cli.app as app
app.app = lambda: context.execute(endless())
main()
"""


def test_a_command_that_is_ended_in_its_ending_says_nothing_of_its_tasks() -> None:
    pipe = subprocess.PIPE
    arguments = [sys.executable, "-c", CANCELLED]
    with subprocess.Popen(arguments, stdout=pipe, stderr=pipe) as running:
        try:
            assert running.stdout is not None
            for line in (b"waiting\n", b"ending\n"):
                assert running.stdout.readline() == line
                running.send_signal(signal.SIGINT)
            said = running.communicate(timeout=60)[1]
        finally:
            running.kill()
    assert (running.returncode, said) == (130, b"")
