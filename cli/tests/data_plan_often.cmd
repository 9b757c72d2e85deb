data plan data/often.json
