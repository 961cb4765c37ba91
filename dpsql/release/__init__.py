"""From exact rows to what a person may see."""
