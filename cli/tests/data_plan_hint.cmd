data convert data/images.idx @TMP/d --labels data/labels.idx --shards 4
data plan --files @TMP/d-*.tfrecord --batch 4 --workers 2 --policy HINT --steps 1
