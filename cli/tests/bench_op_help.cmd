bench op --help
