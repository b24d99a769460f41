"""reef's own small coding agent: four tools, a loop, sessions as files. `python -m reef.native`, as `reef-native`."""
