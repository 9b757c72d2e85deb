info --json
