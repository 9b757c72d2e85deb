bench growth --small --json --filter slots
