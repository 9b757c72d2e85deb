data inspect data/people.csv --record 2
