"""One pane a file; a pane is a pure function of its slice of the snapshot.

Every pane and bar is a `widgets.pane.Drawn`: `show(glance)` takes a `widgets.glance.Glance` and repaints
what changed, `draw(glance, width, height)` is pure. Focus, zoom, scroll and layout come with the glance;
no pane keeps any of its own.

Panes (`widgets.pane.Pane`, `NUMBER` is its key):

| number | class | module | number | class | module |
| --- | --- | --- | --- | --- | --- |
| 1 | NodesPane | nodes | 5 | DecodePane | decode |
| 2 | DownloadPane | download | 6 | KvPane | kv |
| 2 | ContainersPane | containers | 7 | EventsPane | events |
| 3 | RowsPane | rowcopies | 8 | LogPane | log |
| 4 | LanePane | lane | | | |

ContainersPane stands in the place of download and row copies where the lane runs in named containers (`containers` is
set in the fleet file). Bars (`widgets.bars`): HeaderBar 1 row, LampsBar 2, RailBar 1, AlarmBar 1, NextBar 1, KeyBar 2.

In the unboxed layout (`Layout.SMALL`) the panes download, row copies, lane, decode and KV pool are one row each
and the others are a title row with rows below it.
"""
