"""Reuse of what was released before: an answer is measured only where nothing that is stored gives it.

A plan's release is made of pieces (``pieces``), each named by what it asks (``canonical``). ``match``
finds for each piece one ``PieceSource``: ``Stored`` numbers as they are, ``Summed`` ones of finer groups,
``Refined`` ones that a new measurement makes better, or, where none of these is good enough,
``Measured``. What is left to measure is ``Due`` (``measured``). ``pipeline.answer`` then goes on: admit,
reserve, execute, noise, ``merge``, commit, finish.

A new kind of source is one file: a frozen class with the members of ``source.PieceSource`` and a function
that finds it, which is put into ``match.FINDERS`` at its place. A published synopsis would be
``synopsis.py``, behind ``summed`` (no number is drawn for it either) and before ``refined``.
"""
