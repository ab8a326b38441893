"""What only a browser can tell of the pages that Tenure writes: ``python -m tests.browser``, by hand and in CI."""
