bench growth --small --filter slots
