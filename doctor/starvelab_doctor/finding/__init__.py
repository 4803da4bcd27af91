"""What was found about a training job: records, and what they say."""
