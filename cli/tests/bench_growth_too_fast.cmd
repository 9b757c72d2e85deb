bench growth --small --filter queued --most 0.5
