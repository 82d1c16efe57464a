"""Command ``locb store check``, which checks the event log of a stopped service."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from locb.cli.common import console
from locb.cli.errors import leave, leave_without_package, reporting_errors

store_app = typer.Typer(help="Check the store of a service.", no_args_is_help=True)


@store_app.command()
@reporting_errors
def check(
    data_dir: Annotated[
        Path, typer.Option(help="Data folder of the service, as for locb serve.", envvar="LOCB_DATA_DIR")
    ],
    store: Annotated[
        str | None,
        typer.Option(
            help="Address of the database, as for locb serve.",
            envvar="LOCB_STORE",
            show_default="log.db in the data folder",
        ),
    ] = None,
) -> None:
    """Check the event log of a stopped service for missing, duplicate and edited events.

    The command reads the whole log, about 50,000 events per second. It compares every event with its digest, the
    digests with the running hash of the log, and the end of the log with the last event that the service has recorded
    in its data folder. The exit code is 1 if the log is damaged. The command then prints the sequence numbers of the
    first 20 damaged events.

    Example: `locb store check --data-dir state`
    """
    try:
        from locb.service.core.audit import check_log
        from locb.service.store.database import StoreError
        from locb.service.store.locks import AlreadyOpenError
    except ImportError as error:
        leave_without_package("store", "service", error)
    try:
        events, damage, dropped = check_log(data_dir, store)
    except (AlreadyOpenError, StoreError) as error:
        leave(str(error), 1)
    for seq, description in damage:
        console.print(f"event {seq}: {description}", markup=False, highlight=False)
    if damage:
        first = min(damage).seq
        leave(f"the log of {events} events is damaged, first at event {first}: restore the store from a backup", 1)
    console.print(f"The log is intact: {events:,} events.", highlight=False)
    if dropped:
        cause = "dropped (--retain) or never stored (--start-from)"
        console.print(f"The requests and responses up to event {dropped:,} were {cause}.", highlight=False)
