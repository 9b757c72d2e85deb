data convert data/people.csv
