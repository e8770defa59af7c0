"""Ctrl-C ends a command, wherever it comes."""

from __future__ import annotations

import signal
import subprocess
import sys
import textwrap

from kraftlog.cli.interrupts import lost_interrupts_repeated

IN_A_DESTRUCTOR = """
    import signal, time
    from kraftlog import cli

    class Removed:
        def __del__(self):
            {statement}

    def command(**_):
        removed = Removed()
        del removed
        print("went on")
        time.sleep({seconds})
        print("reached its end")

    cli.commands.main = command
    cli.main()
"""


def run(statement: str, seconds: float) -> subprocess.CompletedProcess[str]:
    program = textwrap.dedent(IN_A_DESTRUCTOR.format(statement=statement, seconds=seconds))
    return subprocess.run([sys.executable, "-c", program], check=False, capture_output=True, text=True, timeout=60)


def test_an_interrupt_in_a_destructor_ends_the_command():
    done = run("signal.raise_signal(signal.SIGINT)", 30)
    assert (done.returncode, done.stdout, done.stderr) == (130, "went on\n", "kraftlog: interrupted\n")


def test_other_errors_in_destructors_are_printed():
    done = run("raise ValueError('not ended')", 0)
    assert (done.returncode, done.stdout) == (0, "went on\nreached its end\n")
    assert done.stderr.startswith("Exception ignored in")
    assert done.stderr.endswith("ValueError: not ended\n")


def test_nothing_remains():
    class Removed:
        def __del__(self) -> None:
            raise KeyboardInterrupt

    before = sys.unraisablehook, signal.getsignal(signal.SIGALRM)
    with lost_interrupts_repeated():
        removed = Removed()
        del removed
    assert signal.getitimer(signal.ITIMER_REAL) == (0, 0)
    assert (sys.unraisablehook, signal.getsignal(signal.SIGALRM)) == before
