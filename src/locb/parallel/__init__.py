"""Execution of tasks on many cores or machines: processes of this machine, or a Dask or Ray cluster."""
