bench collective --ranks 3 --filter 1_KiB --seconds 0.001
