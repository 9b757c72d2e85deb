bench growth --small
