bench input --json --seconds 0.001
