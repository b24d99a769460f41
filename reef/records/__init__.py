"""The records room: what was asked, answered, reported and learnt, in one SQLite file.

`Writer` is the only way to write it and lives in the daemon; `Reader` opens it read-only from any process. The modules
`calls`, `reports` and `rows` hold the operations that a `Writer` runs.
"""
