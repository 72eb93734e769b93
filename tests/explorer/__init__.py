"""The explorer in a headless browser. A package, so that its browser ends with its tests."""
