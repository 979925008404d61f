"""Guards of the act side and, for each, the change that takes it away and the tests that must fail then."""
