"""Commands of the command line that do not show a lane, and what all of them share."""
