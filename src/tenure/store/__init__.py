"""Stores: one contract, several engines; `tenure.store.address.open_store` picks one by its address."""
