"""PostgreSQL's catalog in processes of its own: what a client makes one of them do harms no other.

``database`` is the engine in such a process, ``worker`` the process, ``limits`` what it may take;
``process`` is one of them as the parent sees it, ``pool`` all of them, ``frames`` what goes between.
"""
