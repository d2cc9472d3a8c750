"""What was: samples and usage, kept on disk and asked for by range."""
