data plan data/bad_key.json
