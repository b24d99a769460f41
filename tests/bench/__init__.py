"""Measurements, as ratios within one run; absolute figures are only printed."""
