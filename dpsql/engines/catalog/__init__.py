"""PostgreSQL's catalog in processes of its own, so that a client's query harms no other client.

``database`` is the engine in such a process, ``worker`` the process itself, and ``limits`` its
limits. ``process`` is one process as the parent sees it, ``pool`` is all of them, and ``frames``
has the messages between parent and process.
"""
