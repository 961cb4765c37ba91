"""Reuse of earlier releases: an answer is measured only where no stored release can give it.

The release of a plan consists of pieces (``pieces``), each named by its question (``canonical``).
``match`` finds one ``PieceSource`` for each piece: ``Stored`` (stored numbers, unchanged),
``Summed`` (stored numbers of finer groups, added up), ``Refined`` (stored numbers, averaged with a
new measurement), or ``Measured``, where none of these is good enough. The remaining measurements
are ``Due`` (``measured``). ``pipeline.answer`` then goes on: admit, reserve, execute, noise,
``merge``, commit, finish.

A new kind of source is one file: a frozen class with the members of ``source.PieceSource``, and a
function that finds it, which gets its place in ``match.FINDERS``. A published synopsis would be
``synopsis.py``, after ``summed`` (since no number is drawn for it either) and before ``refined``.
"""
