bench collective --local --filter KiB --seconds 0.001 --json
