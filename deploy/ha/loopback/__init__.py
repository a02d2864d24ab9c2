"""The cluster of deploy/ha on one machine, for trials, script/failover and script/recovery."""
