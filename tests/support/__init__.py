"""What several tests share and users do not need."""
