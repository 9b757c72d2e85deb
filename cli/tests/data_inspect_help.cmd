data inspect --help
