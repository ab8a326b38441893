"""Real processes, real signals, real stores: what users of other systems suffered, and what must happen here."""
