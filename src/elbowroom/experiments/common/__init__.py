"""What experiments share: sentences, panels, notes, claims."""
