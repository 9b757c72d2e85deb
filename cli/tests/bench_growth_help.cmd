bench growth --help
