"""Who writes a harness change: `model` (the served model, as strict JSON) or `verbatim` (the ask, word for word)."""
