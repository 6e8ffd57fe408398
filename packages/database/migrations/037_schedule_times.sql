-- Up Migration

-- When a schedule is due: {"time": "08:30", "day": 1, "time_zone": "Europe/Berlin"}. Null: at the time of the anchor in
-- UTC. A release without it counts from the anchor, which is a time of the schedule.
ALTER TABLE workflows ADD COLUMN auto_run_timing json;
