"""The service without HTTP: engine, group commit, replay, snapshots."""
