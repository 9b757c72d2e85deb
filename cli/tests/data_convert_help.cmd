data convert --help
