"""The `reef` command: one module per noun, loaded when that command runs; it reaches the daemon by `reef.client`."""
