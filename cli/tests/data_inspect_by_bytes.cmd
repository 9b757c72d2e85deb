data inspect data/people.bin --records 1
data inspect data/words.tfrecord --records 1
