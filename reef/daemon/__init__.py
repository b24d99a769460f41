"""The daemon: the HTTP surface of one home, and the only writer of its database and its versions.

`python -m reef.daemon` runs it. `table.py` names every route and who may call it, `access.py` decides who is calling,
`house.py` holds the rooms that the routes use, `lifecycle.py` starts and stops it all.
"""
