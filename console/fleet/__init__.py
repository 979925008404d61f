"""What the operator wrote: the fleet file and the recipes."""
