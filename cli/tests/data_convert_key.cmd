data convert data/people.csv @TMP/x --key y
