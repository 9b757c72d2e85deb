bench collective --help
