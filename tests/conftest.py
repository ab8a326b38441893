"""What holds for every test: none may skip itself, and drawn examples have no deadline of their own.

The time limit for each test, the random order and "a warning is an error" are settings in pyproject.toml.
"""

import signal
from collections.abc import Generator

import pytest
from hypothesis import settings

# A shell without job control has what it starts in the background ignore these two, and so would every child of a test.
for number in (signal.SIGINT, signal.SIGQUIT):
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, signal.default_int_handler if number is signal.SIGINT else signal.SIG_DFL)

# The time limit is the test's, from pyproject.toml: one slow example on a busy machine is not a failure.
settings.register_profile("tenure", deadline=None, print_blob=True)
settings.load_profile("tenure")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Turn a skipped or expected failure into a failure: what was not tried must not look as if it passed."""
    report = yield
    if report.skipped:
        report.outcome = "failed"
        report.longrepr = f"{item.nodeid} did not run to its end: {report.longrepr}; a test is never skipped"
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Turn a skipped file into a failure, for the same reason."""
    report = yield
    if report.skipped:
        report.outcome = "failed"
        report.longrepr = f"{collector.nodeid} was not collected: {report.longrepr}; a test is never skipped"
    return report
