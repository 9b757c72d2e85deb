data convert data/people.csv @TMP/people --shards 6
data inspect @TMP/people-00000-of-00006.tfrecord
