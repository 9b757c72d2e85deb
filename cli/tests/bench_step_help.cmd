bench step --help
