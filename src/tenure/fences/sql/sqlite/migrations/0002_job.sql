-- Whose tokens a scope counts (R36); NULL until the next token passes.
ALTER TABLE tenure_fences ADD COLUMN job VARCHAR(200)
