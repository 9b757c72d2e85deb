data convert data/people.csv @TMP/x --compression LZ4
