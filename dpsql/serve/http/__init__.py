"""The same service over HTTP, for programs that want answers with their cost. No rules of its own."""
