"""The tests of script/failover and script/recovery on a cluster of deploy/ha."""
