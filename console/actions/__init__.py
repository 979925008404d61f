"""What the operator may do, as data; nothing here touches a host."""
