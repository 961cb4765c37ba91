"""How each fault shows at a public face: functions that see it where it is planted, and not elsewhere."""
