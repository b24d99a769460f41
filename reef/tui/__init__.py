"""The terminal UI: places on number keys, one action table, real data over `reef.client`.

`app.run` starts it. `source` and `background` fetch, `views` turn answers into lines and cells (pure functions),
`widgets` paint lines and cells, `screens` join them, and `actions` is the one table that bindings, help, palette and
the line of keys are made from. Every foreign string passes through `cells.shown` before it is painted.
"""
