"""Ready jobs for spark-submit."""
