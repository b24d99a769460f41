"""The pages that `reef help TOPIC` shows: one text file a topic."""
