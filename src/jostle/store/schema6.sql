-- Version 6. A job says where it may run; so does the key of its shape, in which it comes before the cards to avoid.
ALTER TABLE job ADD COLUMN targets TEXT NOT NULL DEFAULT '["local"]';  -- JSON: names, in the order in which they are tried
