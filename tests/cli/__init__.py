"""The `reef` command as people and scripts meet it: the real program in a process of its own."""
