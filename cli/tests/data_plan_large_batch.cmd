data plan data/large_batch.json
