"""What the console knows and does; nothing here but `app` knows Textual."""

__version__ = "0.1.0"
