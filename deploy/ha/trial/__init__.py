"""What script/failover and script/recovery do to a cluster of deploy/ha, and how they tell whether it held."""
