"""The places (now, traces, asks, versions) and the dialogs over them."""
