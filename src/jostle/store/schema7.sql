-- Version 7. What is known of a run that has ended, for those that will be like it.
ALTER TABLE run ADD COLUMN command_key TEXT;  -- what it ran, values apart; see core/commandkey.py
ALTER TABLE run ADD COLUMN gpu_name TEXT;     -- the model of its cards; '': it had none, or none was read
ALTER TABLE run ADD COLUMN profile TEXT;      -- JSON: how it used them; see engine/profiles.py
CREATE INDEX run_alike ON run (command_key, gpu_name) WHERE command_key IS NOT NULL;
