data plan data/often.json --json
