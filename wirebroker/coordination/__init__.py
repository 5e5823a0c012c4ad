"""The engine over internal partitions: group coordinators and their topics."""
