bench input --filter lz4
