"""The cluster of deploy/ha on one machine: for trying it, and for script/failover and script/recovery."""
