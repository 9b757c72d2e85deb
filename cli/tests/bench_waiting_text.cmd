bench input --filter waiting --seconds 0.001
