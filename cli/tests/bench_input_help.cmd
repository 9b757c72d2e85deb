bench input --help
