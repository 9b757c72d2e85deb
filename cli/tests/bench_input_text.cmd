bench input --filter next --seconds 0.001
