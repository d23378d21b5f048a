"""The parts of reading a config.json, one question a module; `hf_config` asks them in order."""
