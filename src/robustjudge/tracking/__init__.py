"""Telling other systems: alerts by webhook or Apprise, experiment trackers MLflow and Weights & Biases."""
