"""Engine settings and pod resources that follow from what is asked and from the devices."""
