"""What a run will need on a pod, worked out without one."""
