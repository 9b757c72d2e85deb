data convert data/people.csv @TMP/people
data convert @TMP/people.tfrecord @TMP/people.npz
