-- Leaves all tables on the coordinator.
SELECT;
