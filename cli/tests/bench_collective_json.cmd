bench collective --local --ranks 3 --filter KiB --seconds 0.001 --json
