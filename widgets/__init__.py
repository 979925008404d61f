"""One pane a file; a pane is a pure function of its slice of the snapshot."""
