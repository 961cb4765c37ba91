"""How far answers are off: suites of questions over public data sets, beside bounds that know the truth."""
