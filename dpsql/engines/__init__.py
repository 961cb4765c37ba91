"""The databases that hold the data; the only places that see un-noised values."""
