"""The commands: one file each, with its options, its action, its document and its text."""
