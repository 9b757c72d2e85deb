data --help
