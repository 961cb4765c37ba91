"""What tests share: data, services with throw-away ledgers, the corpus, and comparisons."""
