data plan data/often_nothing.json
