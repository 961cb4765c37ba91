"""From exact rows to the answer that a person may see."""
