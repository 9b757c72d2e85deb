data plan --help
