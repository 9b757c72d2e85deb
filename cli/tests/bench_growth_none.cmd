bench growth --filter weather
