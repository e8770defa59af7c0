"""A log directory in an object store gives the page that the same files give on a local disk."""

from __future__ import annotations

import kraftlog
from golden_files import GOLDEN
from object_store import object_store
from report_pages import Page

NOW = 1_800_000_000_000
LOG = GOLDEN / "transactions_live" / "log"


def test_the_page_of_an_object_store():
    with object_store() as store:
        uri = store.put(LOG, "kafka-logs")
        made = kraftlog.report(uri, storage_options=store.options, now=NOW)
        page = Page(made.html)
    local = Page(kraftlog.report(LOG, now=NOW).html)
    assert page.sections["partitions"].tables == local.sections["partitions"].tables
    assert page.sections["transactions"].tables == local.sections["transactions"].tables
    assert page.sections["groups"].tables == local.sections["groups"].tables
    assert [one["kind"] for one in page.findings] == [one["kind"] for one in local.findings]
    assert all(command.split()[2] == uri for command in page.commands if command.startswith("kraftlog "))
