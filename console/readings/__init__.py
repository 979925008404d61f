"""Raw text to frozen dataclasses: pure, no I/O, one module a subject."""
